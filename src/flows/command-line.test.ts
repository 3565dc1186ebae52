import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assert as check, asyncProperty, string } from "fast-check";
import { cli, command, Exit, z } from "hmz/flows";

const noop = (): undefined => undefined;

/** As JavaScript calls it: what the compiler refuses must be refused at run time too. */
const asCommand = command as (declared: unknown) => ReturnType<typeof command>;
const asCli = cli as (declared: unknown) => ReturnType<typeof cli>;

describe("what is declared wrong is refused", () => {
  const post = { name: "post", about: "posts", call: noop };
  const takes = (shape: Record<string, z.ZodType>) => () => asCommand({ ...post, takes: z.object(shape) });
  const letters = "letters, digits, `.`, `_` and `-`";
  const cannot = "post: the field 'x' cannot be a flag:";
  const rows: readonly (readonly [string, () => unknown, ErrorConstructor, string])[] = [
    ["a command that is no object", () => asCommand(5), TypeError, "a command is declared with an object"],
    ["a command without a name", () => asCommand({}), TypeError, "a command has a name: undefined is none"],
    [
      "a command's name of two words",
      () => asCommand({ ...post, name: "a b" }),
      RangeError,
      `'a b' is not the name of a command: ${letters}`,
    ],
    ["a command about nothing", () => asCommand({ ...post, about: undefined }), TypeError, "post.about is not text"],
    [
      "a command that takes no z.object",
      () => asCommand({ ...post, takes: z.string() }),
      TypeError,
      "post.takes is no z.object",
    ],
    ["a command without a call", () => asCommand({ ...post, call: 1 }), TypeError, "post.call is not a function"],
    ["a cli that is no object", () => asCli(null), TypeError, "a command line is declared with an object"],
    ...["a/b", "", "..", ".", "-x", "ä", "a b", "a\0"].map(
      (name) =>
        [
          `a cli named ${JSON.stringify(name)}`,
          () => asCli({ name, about: "a", commands: [post] }),
          RangeError,
          `'${name}' is not the name of a command line: ${letters}`,
        ] as const,
    ),
    [
      "commands that are no array",
      () => asCli({ name: "b", about: "a", commands: {} }),
      TypeError,
      "b.commands is not an array of commands",
    ],
    [
      "a cli of no command",
      () => asCli({ name: "b", about: "a", commands: [] }),
      RangeError,
      "b has no command: a command line has at least one",
    ],
    [
      "a command named twice",
      () => asCli({ name: "b", about: "a", commands: [post, { ...post }] }),
      RangeError,
      "b names the command 'post' twice",
    ],
    [
      "a command that is none",
      () => asCli({ name: "b", about: "a", commands: [{ name: "x", about: "y" }] }),
      TypeError,
      "x.call is not a function",
    ],
    [
      "a field that is no word",
      takes({ "a b": z.string() }),
      RangeError,
      "post: the field 'a b' cannot be a flag: a flag is named with letters, digits, `_` and `-`",
    ],
    [
      "a field named help",
      takes({ help: z.string() }),
      RangeError,
      "post: the field 'help' cannot be a flag: --help asks for help already",
    ],
    [
      "two fields of one flag",
      takes({ maxItems: z.string(), max_items: z.string() }),
      RangeError,
      "post: the field 'max_items' cannot be a flag: --max-items is the field 'maxItems' already",
    ],
    [
      "a switch's no that is another field",
      takes({ "no-color": z.string(), color: z.boolean() }),
      RangeError,
      "post: the field 'color' cannot be a flag: --no-color is the field 'no-color' already",
    ],
    ...Object.entries({
      date: z.date().optional(),
      map: z.map(z.string(), z.string()),
      set: z.array(z.set(z.string())),
      custom: z.instanceof(URL),
      bigint: z.bigint(),
    }).map(
      ([type, schema]) =>
        [
          `a field that is a ${type}`,
          takes({ x: schema }),
          RangeError,
          `${cannot} no text is a ${type}; take text and make the value of it with .transform()`,
        ] as const,
    ),
    [
      "a field that is null",
      takes({ x: z.null() }),
      RangeError,
      `${cannot} no text is a value of it; take text and make the value of it`,
    ],
    [
      "a status that is none",
      () => new Exit(256),
      RangeError,
      "256 is not an exit status: a whole number from 0 to 255",
    ],
    ["a status of a half", () => new Exit(0.5), RangeError, "0.5 is not an exit status: a whole number from 0 to 255"],
  ];
  for (const [what, make, errorClass, message] of rows) {
    it(what, () => {
      assert.throws(make, (error) => {
        assert.ok(error instanceof errorClass, String(error));
        assert.equal(error.message, message);
        return true;
      });
    });
  }

  it("and what is declared right is frozen", () => {
    const made = command(post);
    const board = cli({ name: "board", about: "a", commands: [made] });
    assert.ok(Object.isFrozen(made) && Object.isFrozen(board) && Object.isFrozen(board.commands));
  });
});

const takes = z.object({
  text: z.string().describe("what to say").default("none"),
  maxItems: z.number().int().max(9).optional(),
  ratio: z.number().default(1),
  urgent: z.boolean().default(false),
  tag: z.array(z.string()).default([]),
  colour: z.enum(["red", "blue"]).default("red"),
  level: z.literal([1, 2]).default(1),
  where: z.object({ path: z.string(), lines: z.array(z.number()).optional() }).optional(),
  size: z.union([z.number(), z.string()]).default(0),
  anything: z.any().optional(),
  when: z.coerce.date().optional(),
  pair: z.tuple([z.number(), z.number()]).optional(),
  nick: z.string().nullable().default(null),
  trimmed: z
    .string()
    .transform((text) => text.trim().length)
    .optional(),
});
const board = cli({
  name: "board",
  about: "what is to be done",
  commands: [
    command({ name: "post", about: "put a note on it", takes, call: (input) => input }),
    command({ name: "list", about: "every note", call: (input) => (input === undefined ? ["a", 1] : "given") }),
    command({
      name: "move",
      about: "moves one",
      takes: z.object({ from: z.string(), to: z.string().min(2), force: z.boolean() }),
      call: ({ from, to }) => `${from} > ${to}`,
    }),
  ],
});

describe("a line that is read", () => {
  const rows: readonly (readonly [string, readonly string[], Partial<z.output<typeof takes>>])[] = [
    ["nothing is the defaults", [], {}],
    ["a value after its flag", ["--text", "hi there"], { text: "hi there" }],
    ["a value with its flag", ["--text=a=b"], { text: "a=b" }],
    ["an empty value", ["--text="], { text: "" }],
    ["an empty value after its flag", ["--text", ""], { text: "" }],
    ["a field by its flag's name", ["--max-items", "3"], { maxItems: 3 }],
    ["a field by its own name", ["--maxItems=3"], { maxItems: 3 }],
    ["a number below none", ["--ratio", "-1.5e2"], { ratio: -150 }],
    ["a value with one dash", ["--text", "- a list"], { text: "- a list" }],
    ["a value of two dashes and words", ["--text", "--- a/file"], { text: "--- a/file" }],
    ["a value that looks like a flag, with its flag", ["--text=--urgent"], { text: "--urgent" }],
    ["a value that looks like a flag, after --", ["--text", "--", "--help"], { text: "--help" }],
    ["-- at the end", ["--text", "a", "--"], { text: "a" }],
    ["a switch", ["--urgent"], { urgent: true }],
    ["a switch, denied", ["--urgent", "--no-urgent"], { urgent: false }],
    ["a switch with its answer", ["--urgent=false"], { urgent: false }],
    ["the last of two", ["--text", "a", "--text", "b"], { text: "b" }],
    ["an array by its flag again", ["--tag", "a", "--tag=b"], { tag: ["a", "b"] }],
    ["one of a few", ["--colour", "blue"], { colour: "blue" }],
    ["one of a few numbers", ["--level", "2"], { level: 2 }],
    ["an object as JSON", ["--where", '{"path":"a","lines":[1]}'], { where: { path: "a", lines: [1] } }],
    ["a number where text would do", ["--size", "5"], { size: 5 }],
    ["text where a number would do", ["--size", "5 m"], { size: "5 m" }],
    ["anything as JSON", ["--anything", "[1]"], { anything: [1] }],
    ["anything else as text", ["--anything", "[1"], { anything: "[1" }],
    ["a date that zod makes", ["--when", "2026-01-02"], { when: new Date("2026-01-02") }],
    ["a pair as JSON", ["--pair", "[1,2]"], { pair: [1, 2] }],
    ["text that may be null", ["--nick", "x"], { nick: "x" }],
    ["what a transform makes of text", ["--trimmed", " abc "], { trimmed: 3 }],
  ];
  const defaults = takes.parse({});
  for (const [what, words, expected] of rows) {
    it(what, async () => {
      const { status, stdout, stderr } = await board.run(["post", ...words]);
      assert.deepEqual([status, stderr], [0, ""]);
      assert.deepEqual(JSON.parse(stdout), JSON.parse(JSON.stringify({ ...defaults, ...expected })));
    });
  }

  it("any text reaches its command as it was written", async () => {
    const echo = cli({
      name: "echo",
      about: "",
      commands: [command({ name: "say", about: "", takes: z.object({ it: z.string() }), call: ({ it }) => it })],
    });
    await check(
      asyncProperty(string({ unit: "binary" }), async (text) => {
        for (const words of [[`--it=${text}`], ["--it", "--", text]]) {
          assert.deepEqual(await echo.run(["say", ...words]), { status: 0, stdout: `${text}\n`, stderr: "" });
        }
      }),
    );
  });
});

describe("a line that is refused says how it is called, and why", () => {
  const usage = {
    board: "usage: board COMMAND [--FLAG VALUE ...]",
    list: "usage: board list [--help]",
    move: "usage: board move [--help] --from FROM --to TO --[no-]force",
  };
  const ok = ["--from", "a", "--to", "bb", "--force"];
  const rows: readonly (readonly [readonly string[], keyof typeof usage, string])[] = [
    [[], "board", "board: needs a command: the commands are post, list, move"],
    [["lsit"], "board", "board: there is no command 'lsit'; did you mean 'list'?"],
    [["drop"], "board", "board: there is no command 'drop'; the commands are post, list, move"],
    [["__proto__"], "board", "board: there is no command '__proto__'; the commands are post, list, move"],
    [["list", "all"], "list", 'board list: does not know what to do with "all": it takes nothing'],
    [["list", "--all"], "list", "board list: there is no --all; it takes nothing"],
    [["move"], "move", "board move: needs --from, --to, --force"],
    [["move", ...ok.slice(2)], "move", "board move: needs --from"],
    [["move", "--form", "a"], "move", "board move: there is no --form; did you mean --from?"],
    [["move", "-from", "a"], "move", "board move: there is no -from; did you mean --from?"],
    [["move", "--nowhere"], "move", "board move: there is no --nowhere; it takes --from, --to, --force"],
    [["move", "--__proto__=1"], "move", "board move: there is no --__proto__; it takes --from, --to, --force"],
    [["move", ...ok, "x"], "move", 'board move: does not know what to do with "x": it takes --from, --to, --force'],
    [
      ["move", ...ok, "--", "--to"],
      "move",
      'board move: does not know what to do with "--to": it takes --from, --to, --force',
    ],
    [
      ["move", ...ok.slice(2), "--from", "--", "a", "b"],
      "move",
      'board move: does not know what to do with "b": it takes --from, --to, --force',
    ],
    [
      ["move", "--from", "--to", "b"],
      "move",
      "board move: --from needs a value; one that begins with dashes is written --from=VALUE",
    ],
    [
      ["move", "--from"],
      "move",
      "board move: --from needs a value; one that begins with dashes is written --from=VALUE",
    ],
    [["move", "--force=maybe"], "move", "board move: --force takes no value: --force says yes, --no-force says no"],
    [
      ["move", "--from", "a", "--to", "b", "--force"],
      "move",
      "board move: --to: Too small: expected string to have >=2 characters",
    ],
  ];
  for (const [argv, of, why] of rows) {
    it(argv.join(" ") || "nothing", async () => {
      assert.deepEqual(await board.run(argv), { status: 2, stdout: "", stderr: `${usage[of]}\n${why}\n` });
    });
  }

  const values: readonly (readonly [string, string])[] = [
    ["--max-items=x", '--max-items: "x" is not a whole number'],
    ["--max-items=1.5", '--max-items: "1.5" is not a whole number'],
    ["--max-items=", '--max-items: "" is not a whole number'],
    ["--max-items=10", "--max-items: Too big: expected number to be <=9"],
    ["--ratio=Infinity", '--ratio: "Infinity" is not a number'],
    ["--ratio=1e999", '--ratio: "1e999" is not a number'],
    ["--ratio=0x10", '--ratio: "0x10" is not a number'],
    ["--colour=green", '--colour: "green" is not one of red, blue'],
    ["--level=3", '--level: "3" is not one of 1, 2'],
    ["--where={", '--where: "{" is not JSON'],
    ['--where={"path":1}', "--where.path: Invalid input: expected string, received number"],
    ['--where={"path":"a","lines":["b"]}', "--where.lines[0]: Invalid input: expected number, received string"],
    ["--when=never", "--when: Invalid input: expected date, received Date"],
  ];
  for (const [word, why] of values) {
    it(word, async () => {
      const { status, stderr } = await board.run(["post", word]);
      assert.deepEqual([status, stderr.trimEnd().split("\n").at(-1)], [2, `board post: ${why}`]);
    });
  }
});

describe("help", () => {
  it("of the whole names every command", async () => {
    const told = {
      status: 0,
      stdout: [
        "usage: board COMMAND [--FLAG VALUE ...]",
        "",
        "what is to be done",
        "",
        "commands:",
        "  post  put a note on it",
        "  list  every note",
        "  move  moves one",
        "",
        "`board COMMAND --help` says what a command takes.",
        "",
      ].join("\n"),
      stderr: "",
    };
    assert.deepEqual(await board.run(["--help"]), told);
    assert.deepEqual(await board.run(["-h"]), told);
  });

  it("of a command says what each flag is, whatever else is on its line", async () => {
    const lines = [["--help"], ["-h"], ["--nonsense", "--help"], ["--text", "a", "-h"]];
    for (const words of lines) {
      const { status, stdout } = await board.run(["post", ...words]);
      assert.equal(status, 0);
      assert.match(stdout, /^usage: board post \[--help\] \[--text TEXT\] \[--max-items N\]/);
      assert.match(stdout, /\n\nput a note on it\n\nflags:\n/);
      assert.match(stdout, /\n {2}--text TEXT +what to say \(default: none\)\n/);
      assert.match(stdout, /\n {2}--\[no-\]urgent +\(default: false\)\n/);
      assert.match(stdout, /\n {2}--tag TAG \.\.\. +\(may be given more than once; default: \[\]\)\n/);
      assert.match(stdout, /\n {2}--colour \{red,blue\} +\(default: red\)\n/);
      assert.match(stdout, /\n {2}--where JSON\n/);
      assert.ok(stdout.split("\n").every((line) => line.length <= 100));
    }
    assert.match((await board.run(["move", "--help"])).stdout, /\n {2}--from FROM +\(required\)\n/);
  });
});

describe("what a command comes to", () => {
  const rows: readonly (readonly [string, () => unknown, number, string, string])[] = [
    ["a string is printed", () => "hi", 0, "hi\n", ""],
    ["nothing prints nothing", noop, 0, "", ""],
    ["null prints nothing", () => null, 0, "", ""],
    ["anything else is JSON", () => ({ ok: [1, true] }), 0, '{"ok":[1,true]}\n', ""],
    ["a number is JSON", () => 0, 0, "0\n", ""],
    ["a promise is awaited", async () => "later", 0, "later\n", ""],
    [
      "an exit is its status",
      () => {
        throw new Exit(3);
      },
      3,
      "",
      "",
    ],
    [
      "an exit says why",
      async () => {
        throw new Exit(255, "full");
      },
      255,
      "",
      "full\n",
    ],
    [
      "an exit of 0 is done",
      () => {
        throw new Exit();
      },
      0,
      "",
      "",
    ],
    [
      "an error is its words",
      () => {
        throw new TypeError("no such note");
      },
      1,
      "",
      "c do: no such note\n",
    ],
    [
      "a thrown text is itself",
      async () => {
        throw "out" as never;
      },
      1,
      "",
      "c do: out\n",
    ],
    ["what is no JSON is an error", () => 1n, 1, "", "c do: Do not know how to serialize a BigInt\n"],
  ];
  for (const [what, call, status, stdout, stderr] of rows) {
    it(what, async () => {
      const c = cli({ name: "c", about: "", commands: [command({ name: "do", about: "", call })] });
      assert.deepEqual(await c.run(["do"]), { status, stdout, stderr });
    });
  }

  it("is given nothing where it takes nothing", async () => {
    assert.deepEqual(await board.run(["list"]), { status: 0, stdout: '["a",1]\n', stderr: "" });
  });
});
