/** What is held back is written as the process leaves: however it leaves short of a kill. */

const held = new Set<() => void>();
let listens = false;

/**
 * Calls `flush` as the process exits. Returns what takes that back. A process may hold hundreds of files, and Node warns
 * past ten listeners: there is one for all of them.
 */
export function flushedAtExit(flush: () => void): () => void {
  held.add(flush);
  if (!listens) {
    listens = true;
    process.once("exit", () => {
      for (const each of held) each();
    });
  }
  return () => held.delete(flush);
}
