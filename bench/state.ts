/**
 * A write to a resumable flow's state, handed to the kernel; and on disk, for one writer and for many at once. Floors: a
 * bare `writeSync`, a bare `fdatasync`. Peer: SQLite in WAL, as most engines that keep a flow's state use it.
 */

import { closeSync, fdatasync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { flow } from "hmz/flows";
import { startRun } from "../src/engine/run.ts";
import type { JournalStore } from "../src/engine/ports.ts";
import { openJournal } from "../src/home/journal.ts";
import { instantSetup } from "./instant.ts";
import { paired, report } from "./measure.ts";

const directory = mkdtempSync(join(tmpdir(), "hmz-bench-state-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

const trouble = (error: Error): never => {
  throw error;
};
const line = (n: number): string => `{"t":"set","id":1,"key":"round","value":{"n":${n},"said":"go on"}}`;
const HEADER = '{"t":"journal","v":1}';

function journalAt(name: string, durable: boolean): JournalStore {
  return openJournal({ path: join(directory, name), durable, trouble });
}

const bare = openSync(join(directory, "bare"), "a");

await handedToKernel();
await onDisk();
await manyWriters();
closeSync(bare);

async function handedToKernel(): Promise<void> {
  const store = journalAt("append.jsonl", false);
  store.begin([HEADER]);
  const database = new DatabaseSync(join(directory, "state.sqlite"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE s (k TEXT PRIMARY KEY, v TEXT)");
  const put = database.prepare("INSERT OR REPLACE INTO s VALUES (?, ?)");
  const setting = flow({ name: "setting", resumable: true }, async (_task, { ctx }) => {
    const figures = await paired([
      {
        name: "hmz: ctx.state.set, journaled",
        count: 20_000,
        run: (count) => {
          for (let n = 0; n < count; n++) ctx.state.set("round", { n, said: "go on" });
        },
      },
      {
        name: "hmz: the journal's file alone",
        count: 20_000,
        run: (count) => {
          for (let n = 0; n < count; n++) store.append(line(n), true);
        },
      },
      {
        name: "floor: a bare writeSync of the same line",
        count: 20_000,
        run: (count) => {
          for (let n = 0; n < count; n++) writeSync(bare, `${line(n)}\n`);
        },
      },
      {
        name: "peer: SQLite, WAL, a row replaced",
        count: 5_000,
        run: (count) => {
          for (let n = 0; n < count; n++) put.run("round", JSON.stringify({ n, said: "go on" }));
        },
      },
    ]);
    report("state: handed to the kernel", figures);
  });
  await run(setting, journalAt("flow.jsonl", false));
  await store.close();
  database.close();
}

async function onDisk(): Promise<void> {
  const store = journalAt("durable.jsonl", true);
  store.begin([HEADER]);
  const sync = promisify(fdatasync);
  const database = new DatabaseSync(join(directory, "durable.sqlite"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE s (k TEXT PRIMARY KEY, v TEXT)");
  const put = database.prepare("INSERT OR REPLACE INTO s VALUES (?, ?)");
  const figures = await paired([
    {
      name: "hmz: a line, then on disk; one writer",
      count: 300,
      run: async (count) => {
        for (let n = 0; n < count; n++) {
          store.append(line(n), true);
          await store.synced();
        }
      },
    },
    {
      name: "floor: writeSync, then a bare fdatasync",
      count: 300,
      run: async (count) => {
        for (let n = 0; n < count; n++) {
          writeSync(bare, `${line(n)}\n`);
          await sync(bare);
        }
      },
    },
    {
      name: "peer: SQLite, WAL, synchronous FULL",
      count: 300,
      run: (count) => {
        for (let n = 0; n < count; n++) put.run("round", JSON.stringify({ n, said: "go on" }));
      },
    },
  ]);
  report("state: on disk, one writer", figures);
  await store.close();
  database.close();
}

async function manyWriters(): Promise<void> {
  const store = journalAt("crowd.jsonl", true);
  store.begin([HEADER]);
  const WRITERS = 128;
  const crowd = async (count: number, write: (n: number) => void, synced: () => Promise<unknown>): Promise<void> => {
    const each = Math.ceil(count / WRITERS);
    const writer = async (): Promise<void> => {
      for (let n = 0; n < each; n++) {
        write(n);
        await synced();
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, writer));
  };
  const figures = await paired([
    {
      name: `hmz: on disk, ${WRITERS} writers`,
      count: WRITERS * 100,
      run: (count) =>
        crowd(
          count,
          (n) => store.append(line(n), true),
          () => store.synced(),
        ),
    },
    {
      name: "floor: a writeSync each, no sync",
      count: WRITERS * 100,
      run: (count) =>
        crowd(
          count,
          (n) => writeSync(bare, `${line(n)}\n`),
          async () => {},
        ),
    },
  ]);
  report("state: on disk, many writers at once", figures);
  console.log(`  ${Math.round(1_000_000 / (figures[0]?.median ?? 1)).toLocaleString("en")} writes a second`);
  await store.close();
}

function run(of: Parameters<typeof startRun>[0]["flow"], journal: JournalStore): Promise<unknown> {
  return startRun({ ...instantSetup([]), flow: of, task: "go", budget: undefined }, journal).result;
}
