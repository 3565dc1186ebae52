/** Real programs for tests: shell scripts that stand for a CLI, and a look at which of their processes live. */

import { readFileSync } from "node:fs";
import { chmod, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { TestContext } from "node:test";
import { leash } from "../../src/process/leash.ts";
import { processEntry } from "../../src/process/process-table.ts";

export const ENV = { PATH: process.env["PATH"] ?? "/usr/bin:/bin" };

/** Each way to hold a tree that this machine has. */
export const WAYS: readonly { readonly way: string; readonly leash: boolean }[] = [
  { way: "without the leash", leash: false },
  ...("path" in leash() ? [{ way: "with the leash", leash: true }] : []),
];

export class Scene {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  static async set(t: TestContext): Promise<Scene> {
    const dir = await realpath(await mkdtemp(join(tmpdir(), "hmz-process-")));
    t.after(async () => rm(dir, { recursive: true, force: true }));
    return new Scene(dir);
  }

  /** A script as a program; in it, `$DIR` is the scene's directory. */
  async fake(script: string): Promise<string> {
    const path = join(this.dir, `fake-${Math.random().toString(36).slice(2)}`);
    await writeFile(path, `#!/bin/sh\nDIR=${this.dir}\n${script}\n`);
    await chmod(path, 0o755);
    return path;
  }

  /** The pid that a script wrote with `echo $$ > $DIR/NAME`, once it has. */
  async pid(name: string): Promise<number> {
    for (let tries = 0; tries < 2000; tries += 1) {
      try {
        const text = readFileSync(join(this.dir, name), "utf8");
        if (text.endsWith("\n")) return Number(text);
      } catch {
        // Not yet.
      }
      await delay(10);
    }
    throw new Error(`${name} was not written`);
  }
}

export function lives(pid: number): boolean {
  return processEntry(pid) !== undefined;
}

/** Whether a process ends of itself soon. */
export async function goes(pid: number, patienceMs = 5000): Promise<boolean> {
  for (let waited = 0; waited < patienceMs; waited += 10) {
    if (!lives(pid)) return true;
    await delay(10);
  }
  return false;
}

/** All that a stream gives. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of stream) all.push(each);
  return all;
}
