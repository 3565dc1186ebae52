import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { RedactionStream } from "./redacted-file.ts";
import { Redaction, REDACTED, secretValues } from "./redaction.ts";

const none = new Redaction([]);

const BASE62 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const letters = (from: string, minLength: number, maxLength = minLength + 40): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...from), minLength, maxLength });
const headed = (head: string, from: string, min: number, max?: number): fc.Arbitrary<string> =>
  letters(from, min, max).map((rest) => head + rest);

/** A text of our own around a secret, where nothing of it continues the secret. */
const around = fc.constantFrom("", " ", "the key is ", "\n", "a\nb ", '{"x": ', "é ", "(", "=> ", "# ", "\t1\t");

/** Secrets by their shape alone. */
const shaped: Readonly<Record<string, fc.Arbitrary<string>>> = {
  anthropic: headed("sk-ant-api03-", `${BASE62}-_`, 24),
  openai: headed("sk-proj-", `${BASE62}-_`, 24),
  stripe: headed("sk_live_", BASE62, 24),
  github: fc.constantFrom("ghp_", "gho_", "ghs_").chain((head) => headed(head, BASE62, 36)),
  "github, fine-grained": headed("github_pat_", `${BASE62}_`, 60),
  gitlab: headed("glpat-", BASE62, 20),
  aws: headed("AKIA", UPPER, 16, 16),
  slack: headed("xoxb-", `${BASE62}-`, 24),
  google: headed("AIza", `${BASE62}-_`, 35, 35),
  "hugging face": headed("hf_", BASE62, 34),
  jwt: fc
    .tuple(letters(BASE62, 20), letters(BASE62, 20), letters(`${BASE62}-_`, 20))
    .map(([head, body, sign]) => `eyJ${head}.eyJ${body}.${sign}`),
  "a private key": letters(`${BASE62}+/`, 200).map(
    (body) => `-----BEGIN RSA PRIVATE KEY-----\n${body.replace(/.{64}/g, "$&\n")}\n-----END RSA PRIVATE KEY-----`,
  ),
};

/** A word that says nothing by itself, as a password is. */
const password = letters(`${BASE62}!#%+-_.*~^`, 8).filter(
  (text) => /[A-Za-z]/.test(text) && !/^[+-]?\d/.test(text) && !text.startsWith("*"),
);
const names = fc.constantFrom(
  "DB_PASSWORD",
  "accessToken",
  "client_secret",
  "x-api-key",
  "OPENAI_API_KEY",
  "credential",
  "HF_TOKEN",
);

/** What is a secret for what stands before it. */
const placed: Readonly<Record<string, fc.Arbitrary<readonly [text: string, secret: string]>>> = {
  "an assignment": fc.tuple(names, password).map(([name, secret]) => [`${name}=${secret}`, secret]),
  "a quoted assignment": fc
    .tuple(
      names,
      letters(`${BASE62} '\\/{}:,;`, 8).filter((text) => /^[A-Za-z]/.test(text)),
      fc.constantFrom("=", ": ", " = ", " => "),
    )
    .map(([name, secret, sign]) => [`"${name}"${sign}${JSON.stringify(secret)}`, JSON.stringify(secret).slice(1, -1)]),
  "a YAML line": fc.tuple(names, password).map(([name, secret]) => [`${name}: ${secret}\n`, secret]),
  "an option": fc
    .tuple(
      fc.constantFrom("--password", "--api-key", "--token"),
      password.filter((text) => !text.startsWith("-")),
    )
    .map(([name, secret]) => [`${name} ${secret}`, secret]),
  "a header": password.map((secret) => [`Authorization: Basic ${secret}`, secret]),
  bearer: password.map((secret) => [`curl -H 'authorization: Bearer ${secret}'`, secret]),
  "bearer alone": password.map((secret) => [`Bearer ${secret}`, secret]),
  "a cookie": password.map((secret) => [`Cookie: session=${secret}; a=b`, secret]),
  "who a URL signs in as": password
    .filter((text) => !/[#?%]/.test(text))
    .map((secret) => [`https://me:${secret}@example.com/x`, secret]),
  "a token that a URL signs in with": letters(BASE62, 12).map((secret) => [
    `git clone https://${secret}@example.com/x.git`,
    secret,
  ]),
  "a URL's query": fc
    .tuple(
      fc.constantFrom("access_token", "sig", "key", "X-Amz-Signature", "api_key"),
      letters(BASE62, 8).filter((text) => !/^\d/.test(text)),
    )
    .map(([name, secret]) => [`https://example.com/x?a=b&${name}=${secret}&c=d`, secret]),
};

/** Ways to write a text into another. */
const written: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  "in JSON": (text) => JSON.stringify({ text }),
  "in JSON in JSON": (text) => JSON.stringify({ text: JSON.stringify({ a: [text] }) }),
  "in JSON, three deep": (text) => JSON.stringify([JSON.stringify([JSON.stringify({ a: text })])]),
  torn: (text) => JSON.stringify({ text }).slice(0, -1),
};

for (const [how, write] of Object.entries(written)) {
  for (const [name, secrets] of Object.entries(shaped)) {
    test(`${name} is known by its shape, ${how}`, () => {
      fc.assert(
        fc.property(secrets, around, around, (secret, before, after) => {
          const line = write(before + secret + after);
          const redacted = none.line(line);
          assert.ok(!holds(redacted, secret), redacted);
          if (how !== "torn" && how !== "as it is") JSON.parse(redacted);
        }),
        { numRuns: 40 },
      );
    });
  }
  for (const [name, texts] of Object.entries(placed)) {
    test(`a secret in ${name} is known by its place, ${how}`, () => {
      fc.assert(
        fc.property(texts, fc.constantFrom("", "\n", "run: "), ([text, secret], before) => {
          const redacted = none.line(write(before + text));
          assert.ok(!holds(redacted, secret), redacted);
          if (how !== "torn" && how !== "as it is") JSON.parse(redacted);
        }),
        { numRuns: 40 },
      );
    });
  }
}

/** Whether a text holds a secret, in whatever depth of JSON: with every backslash gone, and as it is. */
function holds(text: string, secret: string): boolean {
  const bare = (said: string): string => said.replace(/\\+n/g, "").replace(/[\\\n]/g, "");
  return text.includes(secret) || bare(text).includes(bare(secret));
}

test("a value of the environment is taken out in every form that it is written in", () => {
  const value = fc
    .string({ minLength: 8, maxLength: 60, unit: "grapheme" })
    .filter((text) => text.trim().length >= 8 && text.trim() === text && !REDACTED.includes(text));
  fc.assert(
    fc.property(value, around, (secret, before) => {
      const redaction = Redaction.of({ MY_TOKEN: secret });
      const json = JSON.stringify(secret).slice(1, -1);
      const forms = [
        secret,
        json,
        JSON.stringify(json).slice(1, -1),
        encodeURIComponent(secret.toWellFormed()),
        Buffer.from(secret).toString("base64").replace(/=+$/, ""),
        Buffer.from(secret).toString("base64url"),
        Buffer.from(secret).toString("hex"),
      ];
      for (const form of forms) {
        assert.ok(!redaction.text(`${before}${form}.`).includes(form), form);
        const line = redaction.line(JSON.stringify({ a: { [form]: [form] }, b: `${before}${form}` }));
        const { a, b } = JSON.parse(line) as { a: Record<string, string[]>; b: string };
        assert.ok(![...Object.keys(a), ...Object.values(a).flat(), b].some((text) => text.includes(form)), line);
      }
    }),
    { numRuns: 200 },
  );
});

test("which variables of the environment are secrets goes by their names and their length", () => {
  const values = secretValues({
    OPENAI_API_KEY: "value-of-openai",
    GH_TOKEN: "value-of-gh",
    DB_PASSWORD: "short",
    NPM_CONFIG__AUTH: "value-of-auth",
    AWS_SECRET_ACCESS_KEY: "value-of-aws",
    apikey: "value-of-lower",
    PWD: "/home/somebody/work",
    TOKENIZERS_PARALLELISM: "false-false",
    SSH_AUTH_SOCK: "/tmp/agent.sock",
    PEM_KEY: "-----BEGIN\nline-of-a-key\n",
  });
  assert.deepEqual(values.toSorted(), [
    "-----BEGIN",
    "-----BEGIN\nline-of-a-key",
    "line-of-a-key",
    "value-of-auth",
    "value-of-aws",
    "value-of-gh",
    "value-of-lower",
    "value-of-openai",
  ]);
});

test("counts of tokens, numbers and plain words are kept", () => {
  for (const text of [
    '{"tokens":{"opus":1500},"spent":{"input":12,"output":1500},"cost":1.25,"outputTokens":200000}',
    '{"output_tokens": 1500, "token_count": 5, "max_tokens": "200k"}',
    "-p budget.output_tokens=200k",
    "tokens: 1,500; cost: $1.25",
    "the tokenizer splits a password field in two",
    "const token: string = read(token);",
    "see https://example.com/a?page=2&sort=name and git@example.com:a/b.git",
    "a task-force sk-lift, risk-free",
    "export TOKEN=$OTHER_TOKEN",
    '{"password":null,"token":"","secret":{"a":{}}}',
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
  ]) {
    assert.equal(none.line(text), text);
  }
});

test("what is named in JSON is taken out whole, whatever it is", () => {
  const line = none.line(
    JSON.stringify({
      argv: ["curl", "--password", "hunter22", "-x"],
      credentials: { user: "me", pin: 1234, deep: [{ a: "b" }] },
      accessToken: 'a "quoted" one',
      header: { Authorization: "whatever it is", Cookie: "a=b" },
      set: { key: "client_secret", value: "not told" },
      kept: 5,
    }),
  );
  assert.deepEqual(JSON.parse(line), {
    argv: ["curl", "--password", REDACTED, "-x"],
    credentials: { user: REDACTED, pin: REDACTED, deep: [{ a: REDACTED }] },
    accessToken: REDACTED,
    header: { Authorization: REDACTED, Cookie: REDACTED },
    set: { key: "client_secret", value: REDACTED },
    kept: 5,
  });
});

test("a private key of several texts, a cut one, a key that is there twice, and escapes that hide one", () => {
  const lines = none.line(
    JSON.stringify(["-----BEGIN PRIVATE KEY-----", "MIIEabc", "MIIEdef", "-----END PRIVATE KEY-----", "kept"]),
  );
  assert.ok(!lines.includes("MIIE") && lines.includes("kept"), lines);
  assert.ok(!none.text("1 -----BEGIN PRIVATE KEY-----\nMIIEabc\nMIIEdef").includes("MIIE"));
  assert.ok(!none.line('{"password":"hunter2222","password":"second2222"}').includes("2222"));
  const hidden = none.line(String.raw`{"a":"\u0073k-ant-abcdefghij0123456789"}`);
  assert.deepEqual(JSON.parse(hidden), { a: REDACTED });
});

test("a line that is nested without end is redacted as text", () => {
  const deep = `${"[".repeat(20_000)}"sk-ant-abcdefghij0123456789"${"]".repeat(20_000)}`;
  assert.ok(!none.line(deep).includes("abcdefghij"));
});

test("cut into parts anywhere, a text is redacted as it is whole", () => {
  const secret = "value-of-a-variable";
  const redaction = new Redaction([secret]);
  const filler = fc.constantFrom("x".repeat(40_000), "word ".repeat(20_000), "\n".repeat(3_000), "a=b&".repeat(30_000));
  const planted = fc.oneof(
    fc.constant(secret),
    ...Object.values(shaped),
    ...Object.values(placed).map((texts) => texts.map(([text]) => text)),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(filler, planted), { minLength: 8, maxLength: 12 }),
      fc.integer({ min: 1_000, max: 200_000 }),
      (parts, size) => {
        const text = parts.map(([before, secret]) => `${before} ${secret} `).join("");
        const stream = new RedactionStream(redaction);
        let made = "";
        for (let at = 0; at < text.length; at += size) made += stream.push(text.slice(at, at + size));
        made += stream.end();
        assert.ok(made === redaction.text(text), "the parts differ from the whole");
      },
    ),
    { numRuns: 25 },
  );
});

test("no text takes more than its length to look at", () => {
  const began = process.cpuUsage().user;
  for (const part of [
    "token",
    "token ",
    "://",
    "?a",
    "eyJ",
    "-----BEGIN PRIVATE KEY-----",
    'token="',
    "bearer ",
    "sk-",
    "\\",
    "password\\\\\\",
    "--token",
    "A://",
  ]) {
    none.text(part.repeat(Math.ceil(400_000 / part.length)));
  }
  // Two orders of magnitude over what it takes, and as many under what looking back from everywhere would.
  assert.ok(process.cpuUsage().user - began < 20_000_000);
});
