/** What every machine does alike, as tests: `machineConformance(name, make)` in a test file of its own. */

import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { test } from "node:test";
import type { ExecOutcome, Machine } from "../../src/engine/ports.ts";
import { EnvCommandTimeout, EnvError, EnvFileNotFound, EnvUnavailable } from "../../src/flows/errors.ts";

export interface MachineUnderTest {
  readonly machine: Machine;
  /** Absolute, empty, on the machine. */
  readonly workdir: string;
  cleanup(): Promise<void> | void;
}

export interface MachineConformanceOptions {
  /** Whether it runs real programs. One in memory knows `true`, `false`, `echo`, `cat`, `ls` and `sleep N`. */
  readonly real?: boolean;
}

export function machineConformance(
  name: string,
  make: () => Promise<MachineUnderTest>,
  options: MachineConformanceOptions = {},
): void {
  const real = options.real ?? true;

  /** One case: on any machine, or on one that runs real programs. */
  const check = (what: string, needsReal: boolean, body: (under: Subject) => Promise<void>): void => {
    test(`${name}: ${what}`, { skip: needsReal && !real ? "it runs no real programs" : false }, async () => {
      const under = await make();
      try {
        await body(new Subject(under));
      } finally {
        await under.machine.close();
        await under.cleanup();
      }
    });
  };

  check("says what it is", false, async ({ machine }) => {
    assert.ok(machine.serves.has("shell"));
    assert.ok(machine.size.cpus >= 1);
    assert.ok(machine.size.memory > 0);
    assert.ok(machine.size.gpus >= 0);
  });

  check("a command's status and streams", false, async (subject) => {
    assert.deepEqual(await subject.exec("true"), { status: 0, stdout: "", stderr: "" });
    assert.equal((await subject.exec("false")).status, 1);
    assert.deepEqual(await subject.exec("echo", "a  b", "ü≤"), { status: 0, stdout: "a  b ü≤\n", stderr: "" });
  });

  check("the streams are kept apart, and the status is the program's", true, async (subject) => {
    assert.deepEqual(await subject.sh("printf out; printf err >&2; exit 7"), {
      status: 7,
      stdout: "out",
      stderr: "err",
    });
  });

  check("words reach the program as they are", true, async (subject) => {
    const words = ["", " ", "a b", "$HOME", "'\"`", "*", "\\", "-n", "a\nb", "ü", ";true"];
    const ran = await subject.exec("sh", "-c", 'for w in "$@"; do printf "%s\\037" "$w"; done', "sh", ...words);
    assert.deepEqual(ran.stdout.split("\u001f").slice(0, -1), words);
  });

  check("a signal that ends the program is 128 and its number", true, async (subject) => {
    assert.equal((await subject.sh("kill -TERM $$")).status, 143);
  });

  check("standard input is closed", false, async (subject) => {
    assert.deepEqual(await subject.exec("cat"), { status: 0, stdout: "", stderr: "" });
  });

  check("it runs in the workdir", true, async (subject) => {
    await subject.machine.write(subject.at("here.txt"), Buffer.from("x"));
    assert.equal((await subject.sh("cat here.txt")).stdout, "x");
  });

  check("a timeout ends the command with EnvCommandTimeout", false, async (subject) => {
    await assert.rejects(
      subject.machine.exec(["sleep", "30"], { cwd: subject.workdir, timeout: 50 }),
      EnvCommandTimeout,
    );
  });

  check("a timeout ends the whole tree", true, async (subject) => {
    // Two that go on for as long as they live, one of which does not listen to TERM.
    const beats = (file: string): string => `while :; do echo x >> ${file}; sleep 0.02; done`;
    await assert.rejects(
      subject.machine.exec(["sh", "-c", `(${beats("a")}) & (trap '' TERM; ${beats("b")}) & wait`], {
        cwd: subject.workdir,
        timeout: 200,
      }),
      EnvCommandTimeout,
    );
    const sizes = async (): Promise<readonly number[]> =>
      Promise.all(["a", "b"].map(async (file) => (await subject.machine.read(subject.at(file))).length));
    const before = await sizes();
    await delay(150);
    assert.deepEqual(await sizes(), before);
  });

  check("an abort ends the command with the signal's reason", false, async (subject) => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const running = subject.machine.exec(["sleep", "30"], {
      cwd: subject.workdir,
      timeout: 0,
      signal: controller.signal,
    });
    setTimeout(() => controller.abort(reason), 30);
    await assert.rejects(running, (error) => error === reason);
    await assert.rejects(
      subject.machine.exec(["true"], { cwd: subject.workdir, timeout: 0, signal: controller.signal }),
      (error) => error === reason,
    );
  });

  check("a program that is not there is an EnvError that names it", true, async (subject) => {
    await assert.rejects(subject.exec("no-such-program-hmz"), (error: unknown) => {
      assert.ok(error instanceof EnvError && !(error instanceof EnvUnavailable), String(error));
      assert.match(error.message, /no-such-program-hmz/);
      return true;
    });
  });

  check("a workdir that is not there is EnvUnavailable", false, async (subject) => {
    const cwd = subject.at("nowhere");
    await assert.rejects(subject.machine.exec(["true"], { cwd, timeout: 0 }), (error: unknown) => {
      assert.ok(error instanceof EnvUnavailable, String(error));
      assert.ok(error.message.includes(cwd), error.message);
      return true;
    });
  });

  check("a command that leaves something behind ends all the same", true, async (subject) => {
    const ran = await subject.sh("echo done; sleep 30 &");
    assert.deepEqual(ran, { status: 0, stdout: "done\n", stderr: "" });
  });

  check("a file is read as it was written", false, async ({ machine, at }) => {
    const every = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);
    for (const [path, data] of [
      ["bytes.bin", every],
      ["empty", new Uint8Array()],
      ['ünï ≤ "quoted" $x.txt', Buffer.from("≤\r\n\u2028\0")],
      ["a/b/c/deep.txt", Buffer.from("deep")],
    ] as const) {
      await machine.write(at(path), data);
      assert.deepEqual(Buffer.from(await machine.read(at(path))), Buffer.from(data), path);
    }
  });

  check("a file is replaced whole", false, async ({ machine, at }) => {
    await machine.write(at("file"), Buffer.from("a long first version"));
    await machine.write(at("file"), Buffer.from("short"));
    assert.equal(Buffer.from(await machine.read(at("file"))).toString(), "short");
  });

  check("a missing file is EnvFileNotFound", false, async ({ machine, at }) => {
    await assert.rejects(machine.read(at("missing")), EnvFileNotFound);
    await assert.rejects(machine.read(at("missing/deeper")), EnvFileNotFound);
  });

  check("a directory cannot be read, nor written over", false, async ({ machine, at }) => {
    await machine.makeDirectory(at("dir"));
    await assert.rejects(machine.read(at("dir")), EnvError);
    await assert.rejects(machine.write(at("dir"), Buffer.from("x")), EnvError);
  });

  check("directories", false, async ({ machine, at }) => {
    assert.equal(await machine.isDirectory(at("one/two")), false);
    await machine.makeDirectory(at("one/two"));
    await machine.makeDirectory(at("one/two"));
    assert.equal(await machine.isDirectory(at("one/two")), true);
    await machine.write(at("one/file"), Buffer.from("x"));
    assert.equal(await machine.isDirectory(at("one/file")), false);
    await assert.rejects(machine.makeDirectory(at("one/file/under")), EnvError);
  });
}

class Subject {
  readonly machine: Machine;
  readonly workdir: string;

  constructor(under: MachineUnderTest) {
    this.machine = under.machine;
    this.workdir = under.workdir;
  }

  readonly at = (path: string): string => `${this.workdir}/${path}`;

  async exec(...argv: string[]): Promise<ExecOutcome> {
    return this.machine.exec(argv, { cwd: this.workdir, timeout: 20_000 });
  }

  async sh(script: string): Promise<ExecOutcome> {
    return this.exec("sh", "-c", script);
  }
}
