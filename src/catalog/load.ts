/**
 * Importing flow modules. A module and what it imports by path are imported as one copy, which its URL numbers
 * (`index.ts?hmz=3`): a copy whose files all are as they were is shared, and one whose files changed is left to the runs
 * that hold it, while the next import makes a new one.
 *
 * Hooks in Node's own loader carry the number from file to file, read the files, and pin `hmz`, `hmz/*` and `zod` to the
 * copy that runs: a flow needs no `node_modules`, and two copies of hmz would not know each other's runs.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { registerHooks } from "node:module";
import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { locate, locateMissing, locateSyntax } from "./failure.ts";
import { stripped } from "./strip.ts";

/** One import of a module and its files. */
export interface Copy {
  /** Every file that was read for it, and the digest of what it held. */
  readonly files: ReadonlyMap<string, string>;
  readonly exports: Readonly<Record<string, unknown>>;
}

interface Loading {
  readonly files: Map<string, string>;
  readonly cache: string | undefined;
}

const loading = new Map<string, Loading>();
const current = new Map<string, { readonly files: Map<string, string>; readonly copy: Promise<Copy> }>();
let copies = 0;

/**
 * Imports a module, or answers the copy that was imported before where none of its files has changed.
 *
 * @param entry The file that it starts at.
 * @param name What the module is called. One file under two names, through a link, is two modules.
 * @param cache Where stripped TypeScript is kept.
 * @throws whatever the import throws; `failureOf` says where.
 */
export function importCopy(entry: string, name: string, cache?: string): Promise<Copy> {
  const file = realpathSync(entry);
  const key = `${name}\0${file}`;
  const held = current.get(key);
  if (held && [...held.files].every(([path, digest]) => digestOf(path) === digest)) return held.copy;
  hook();
  copies += 1;
  const id = String(copies);
  const files = new Map<string, string>();
  loading.set(id, { files, cache });
  const copy = importUrl(`${pathToFileURL(file).href}?hmz=${id}`).then((exports): Copy => ({ files, exports }));
  const made = { files, copy };
  current.set(key, made);
  copy.catch((error: unknown) => {
    locateSyntax(error, files.keys());
    // Node remembers a failed import by its URL: the next one must be another, whether or not a file changed.
    loading.delete(id);
    if (current.get(key) === made) current.delete(key);
  });
  return copy;
}

/** How long an import may take: a module declares flows, it does not work while it is imported. */
const IMPORT_MS = 10_000;

async function importUrl(url: string): Promise<Readonly<Record<string, unknown>>> {
  // An await that never settles, with no handle behind it, would end the process with status 0 and not a word.
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(
        new Error(`it does not come to an end: an await outside of its flows waits for over ${IMPORT_MS / 1_000} s`),
      );
    }, IMPORT_MS);
  });
  const allowExit = refuseExit();
  try {
    return (await Promise.race([importing.run(true, () => import(url)), late])) as Readonly<Record<string, unknown>>;
  } finally {
    clearTimeout(timer);
    allowExit();
  }
}

/** Set where a module's own code runs as it is imported. */
const importing = new AsyncLocalStorage<true>();
let imports = 0;
let exit: typeof process.exit | undefined;

/**
 * A module that ends the process as it is imported would end whoever only lists it. Whoever else ends the process, on a
 * signal, still does. Returns what allows it again.
 */
function refuseExit(): () => void {
  if (imports === 0) {
    const allowed = process.exit.bind(process);
    exit = allowed;
    process.exit = (code) => {
      if (importing.getStore()) throw new Error("it calls process.exit outside of its flows");
      return allowed(code);
    };
  }
  imports += 1;
  return () => {
    imports -= 1;
    if (imports === 0 && exit) process.exit = exit;
  };
}

function digestOf(path: string): string | undefined {
  try {
    return digest(readFileSync(path));
  } catch {
    return undefined;
  }
}

function digest(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("base64");
}

const OF_A_FLOW = /[?&]hmz=(\d+)$/;
const OURS = /^hmz(?:\/|$)/;
const ZOD = /^zod(?:\/|$)/;
const KEYED = /\.(?:[mc]?[jt]s|json)$/;

let hooked = false;

function hook(): void {
  if (hooked) return;
  hooked = true;
  const fromSources = import.meta.url.endsWith(".ts");
  registerHooks({
    resolve(specifier, context, next) {
      // Taken before `next`, which writes what it is given into the context.
      const importer = context.parentURL ?? "";
      const id = OF_A_FLOW.exec(importer)?.[1];
      // Whoever asks for hmz is given the one that runs, a library of the flow's own included.
      if (OURS.test(specifier) || (id !== undefined && ZOD.test(specifier))) {
        const conditions = fromSources ? [...context.conditions, "hmz-source"] : context.conditions;
        try {
          return next(specifier === "zod" ? "#zod" : specifier, { ...context, conditions, parentURL: import.meta.url });
        } catch (error) {
          locateMissing(error, importer, specifier);
          throw error;
        }
      }
      if (id === undefined) return next(specifier, context);
      try {
        const resolved = next(specifier, context);
        const { pathname, search } = new URL(resolved.url);
        const own = resolved.url.startsWith("file:") && /^(?:\.{0,2}\/|file:)/.test(specifier) && KEYED.test(pathname);
        if (!own || OF_A_FLOW.test(search)) return resolved;
        return { ...resolved, url: `${resolved.url}${search === "" ? "?" : "&"}hmz=${id}` };
      } catch (error) {
        locateMissing(error, importer, specifier);
        throw error;
      }
    },
    load(url, context, next) {
      const id = OF_A_FLOW.exec(url)?.[1];
      const into = id === undefined ? undefined : loading.get(id);
      if (!into) return next(url, context);
      const path = fileURLToPath(url);
      const content = readFileSync(path);
      into.files.set(path, digest(content));
      if (!/^\.m?[jt]s$/.test(extname(path))) return next(url, context);
      const source = content.toString("utf8");
      if (extname(path).endsWith("js")) return { format: "module", source, shortCircuit: true };
      try {
        return { format: "module", source: stripped(source, into.cache), shortCircuit: true };
      } catch (error) {
        locate(error, path);
        throw error;
      }
    },
  });
}
