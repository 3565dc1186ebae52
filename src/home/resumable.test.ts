import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { EPIC_FILES } from "./epic.ts";
import { thisOwner } from "./owner.ts";
import { Home } from "./paths.ts";
import { newestResumable, resumableAt } from "./resumable.ts";

const HEADER = '{"t":"journal","v":1}\n';
const CALL = '{"t":"call","id":1,"parent":0,"digest":"00","seq":0,"ref":"d:loop"}\n';

interface Made {
  readonly ref?: string;
  readonly flow?: string;
  readonly workspace?: string;
  readonly pickedUp?: string;
  /** What is before the first record. */
  readonly before?: string;
  readonly journal?: string | undefined;
  readonly held?: object | string;
}

/** A home, and a workspace whose epics it holds. */
class Epics {
  readonly home: Home;
  readonly workspace: string;
  #made = 0;

  constructor() {
    const root = temporaryDirectory("resumable");
    this.home = new Home(join(root, "home"));
    this.workspace = join(root, "work");
    mkdirSync(this.workspace);
  }

  /** Makes an epic newer than every other, and returns its name. */
  make(made: Made = {}): string {
    const stamp = new Date(Date.UTC(2026, 0, 1) + this.#made * 1000).toISOString().replace(/[-:]/g, "");
    const name = `${stamp}-${(this.#made++).toString(16).padStart(6, "0")}`;
    const directory = this.directory(name);
    mkdirSync(directory, { recursive: true });
    const { ref = "d:loop", flow = "loop", workspace = this.workspace, pickedUp, before = "", held } = made;
    const began = { event: "began", workspace, ref, flow, ...(pickedUp === undefined ? {} : { picked_up: pickedUp }) };
    writeFileSync(join(directory, EPIC_FILES.record), `${before}${JSON.stringify(began)}\n{"event":"called"}\n`);
    const journal = "journal" in made ? made.journal : HEADER + CALL;
    if (journal !== undefined) writeFileSync(join(directory, EPIC_FILES.journal), journal);
    if (held !== undefined) {
      const text = typeof held === "string" ? held : JSON.stringify(held);
      writeFileSync(join(directory, EPIC_FILES.held), text);
    }
    return name;
  }

  directory(name: string): string {
    return join(this.home.epicsOf(this.workspace), name);
  }

  newest(of: { readonly ref?: string; readonly flow?: string } = {}): string | undefined {
    const { ref = "d:loop", flow = "loop" } = of;
    return newestResumable(this.home, { workspace: this.workspace, ref, flow })?.name;
  }

  refusal(epic: string): string {
    try {
      resumableAt(this.home, { workspace: this.workspace, epic });
    } catch (error) {
      assert.equal((error as Error).name, "UnresumableEpic");
      return (error as Error).message;
    }
    return "";
  }
}

/** A process that is there for as long as `during` takes, as a lock's owner; and after. */
async function other(during: (owner: object) => void): Promise<object> {
  const child = spawn(process.execPath, ["-e", "console.log(1); process.stdin.resume()"], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const gone = once(child, "exit");
  await once(child.stdout, "data");
  // Without its start, as on a system that does not tell.
  const owner = { pid: child.pid };
  try {
    during(owner);
  } finally {
    child.stdin.end();
    await gone;
  }
  return owner;
}

describe("the newest run that can be picked up", () => {
  it("is of the ref, or of the name, in the workspace", () => {
    const epics = new Epics();
    assert.equal(epics.newest(), undefined);
    const byRef = epics.make({ flow: "./other/loop" });
    epics.make({ flow: "x", ref: "d:x" });
    epics.make({ workspace: `${epics.workspace}/elsewhere` });
    assert.equal(epics.newest(), byRef);
    const byName = epics.make({ ref: "moved:loop" });
    assert.equal(epics.newest(), byName);
    assert.equal(epics.newest({ flow: "none" }), byRef);
    assert.equal(epics.newest({ ref: "d:none", flow: "none" }), undefined);
  });

  it("is found where the workspace is named by a link to it", () => {
    const epics = new Epics();
    const name = epics.make();
    const link = `${epics.workspace}-link`;
    symlinkSync(epics.workspace, link);
    assert.equal(newestResumable(epics.home, { workspace: link, ref: "d:loop", flow: "loop" })?.name, name);
  });

  const withoutProgress: readonly (readonly [string, string | undefined])[] = [
    ["no journal", undefined],
    ["an empty journal", ""],
    ["a journal of its first line alone", HEADER],
    ["a journal of a torn call", HEADER + CALL.slice(0, -4)],
    ["a journal that holds a call in a value alone", `${HEADER}{"t":"set","id":1,"value":{"t":"call"}}\n`],
    ["garbage", "\0\0\0\nnull\n[]\n5\n\xff"],
  ];
  for (const [what, journal] of withoutProgress) {
    it(`is not one with ${what}, which is refused where it is chosen`, () => {
      const epics = new Epics();
      const older = epics.make();
      const without = epics.make({ journal });
      assert.equal(epics.newest(), older);
      assert.equal(epics.refusal(without), `${without} has no saved progress to resume from`);
      const path = epics.directory(without);
      assert.equal(epics.refusal(path), `${path} has no saved progress to resume from`);
    });
  }

  it("may have a torn first line, or NULs before it, in its record and its journal", () => {
    const epics = new Epics();
    const name = epics.make({ before: `\0\0\0{"event":"be\n`, journal: `\0\0${HEADER}{"t":\n\0${CALL}` });
    assert.equal(epics.newest(), name);
    // A task is as long as whoever wrote it wants.
    const long = epics.make({ before: `${JSON.stringify({ event: "noted", x: "ü".repeat(400_000) })}\n` });
    assert.equal(epics.newest(), long);
  });

  it("is not one whose process is there; it is once that is gone", async () => {
    const epics = new Epics();
    const older = epics.make();
    let going = "";
    await other((owner) => {
      going = epics.make({ held: owner });
      assert.equal(epics.newest(), older);
      assert.equal(epics.refusal(going), `${going} is still going: stop it first, then resume it`);
    });
    assert.equal(epics.newest(), going);
    assert.equal(epics.refusal(going), "");
  });

  it("is one whose process id was given to another process", () => {
    const epics = new Epics();
    const own = epics.make({ held: thisOwner() });
    assert.equal(epics.newest(), undefined);
    writeFileSync(join(epics.directory(own), EPIC_FILES.held), JSON.stringify({ ...thisOwner(), start: 1 }));
    assert.equal(epics.newest(), process.platform === "linux" ? own : undefined);
  });

  it("is one whose lock names nobody: a full disk left it empty", () => {
    const epics = new Epics();
    const name = epics.make({ held: "" });
    assert.equal(epics.newest(), name);
  });

  it("is not one that a run still going has picked up, under whatever name; it is once that is gone", async () => {
    const epics = new Epics();
    const oldest = epics.make();
    const first = epics.make();
    let second = "";
    await other((owner) => {
      second = epics.make({ pickedUp: first, held: owner, journal: undefined, ref: "e:loop", flow: "moved" });
      assert.equal(epics.newest(), oldest);
      // Whoever chooses it knows what they do.
      assert.equal(epics.refusal(first), "");
    });
    assert.equal(epics.newest(), first);
    rmSync(epics.directory(second), { recursive: true });
    assert.equal(epics.newest(), first);
  });

  it("is looked for from the newest on, and the rest is not read", () => {
    const epics = new Epics();
    epics.make();
    const name = epics.make();
    // Reading any of the older ones would fail: their record is a link to itself.
    for (let n = 0; n < 50; n++) {
      const broken = epics.directory(`20250101T000000.000Z-${n.toString(16).padStart(6, "0")}`);
      mkdirSync(broken);
      symlinkSync(EPIC_FILES.record, join(broken, EPIC_FILES.record));
    }
    assert.equal(epics.newest(), name);
    // And one that cannot be read is passed over.
    assert.equal(epics.newest({ ref: "d:none", flow: "none" }), undefined);
  });
});

describe("a chosen run", () => {
  it("is named by a path, its whole name, its beginning, or its end", () => {
    const epics = new Epics();
    const name = epics.make();
    const other = epics.make({ workspace: "/elsewhere" });
    for (const epic of [epics.directory(name), name, name.slice(0, 19), name.slice(-6)]) {
      const found = resumableAt(epics.home, { workspace: epics.workspace, epic });
      assert.deepEqual(found, {
        name,
        directory: epics.directory(name),
        journal: join(epics.directory(name), "resume.jsonl"),
      });
    }
    assert.equal(epics.refusal("2026"), "'2026' means 2 epics; write more of the name");
    assert.equal(epics.refusal("none"), "there is no epic 'none'; 'hmz epics' lists them");
    assert.equal(epics.refusal("./none"), "there is no epic './none'; 'hmz epics' lists them");
    assert.equal(basename(other), other);
  });
});
