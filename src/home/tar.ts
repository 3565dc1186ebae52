/** A tar archive, written as it is filled: POSIX headers, with an extended one where a name does not fit. */

import type { Writable } from "node:stream";
import { once } from "node:events";

const BLOCK = 512;

/** What an archive says of a file. Of no owner: who made it is nobody's business. */
export interface TarEntry {
  /** Its path inside the archive, with `/`. */
  readonly path: string;
  /** Bytes: as many are to follow. */
  readonly size: number;
  /** Unix seconds. */
  readonly modified: number;
}

export class TarWriter {
  readonly #out: Writable;

  constructor(out: Writable) {
    this.#out = out;
  }

  /**
   * Adds a file.
   *
   * @throws Error where its content is longer or shorter than was said.
   */
  async add(entry: TarEntry, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    const { path, size } = entry;
    const extended = [
      ...(fits(path) ? [] : [["path", path] as const]),
      ...(size < 8 ** 11 ? [] : [["size", String(size)] as const]),
    ];
    if (extended.length > 0) {
      const records = Buffer.concat(extended.map(([key, value]) => paxRecord(key, value)));
      await this.#write(header({ path: "pax", size: records.length, modified: entry.modified }, "x"));
      await this.#padded([records], records.length);
    }
    await this.#write(header(entry, "0"));
    await this.#padded(content, size);
  }

  /** Writes what an archive ends with. */
  async end(): Promise<void> {
    await this.#write(Buffer.alloc(2 * BLOCK));
  }

  async #padded(content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, size: number): Promise<void> {
    let written = 0;
    for await (const chunk of content) {
      written += chunk.length;
      await this.#write(chunk);
    }
    if (written !== size) throw new Error(`${written} bytes were written to the archive where ${size} were announced`);
    const rest = size % BLOCK;
    if (rest > 0) await this.#write(Buffer.alloc(BLOCK - rest));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (!this.#out.write(bytes)) await once(this.#out, "drain");
  }
}

/** Whether a path stands in a header as it is. */
function fits(path: string): boolean {
  return Buffer.byteLength(path) <= 100 && /^[\x20-\x7e]*$/.test(path);
}

function header({ path, size, modified }: TarEntry, type: "0" | "x"): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(
    fits(path)
      ? path
      : Buffer.from(path)
          .subarray(0, 100)
          .toString("latin1")
          .replace(/[^\x20-\x7e]/g, "_"),
    0,
    100,
    "latin1",
  );
  block.write("0000600\0", 100);
  block.write("0000000\0", 108);
  block.write("0000000\0", 116);
  block.write(`${(size < 8 ** 11 ? size : 0).toString(8).padStart(11, "0")}\0`, 124);
  block.write(`${Math.max(0, Math.floor(modified)).toString(8).padStart(11, "0")}\0`, 136);
  // The sum is made with its own field as spaces.
  block.write("        ", 148);
  block.write(type, 156);
  block.write("ustar\u000000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** `<length> <key>=<value>\n`, the length's own digits counted in. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}
