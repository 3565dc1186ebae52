import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Refused } from "../refused.ts";
import { type EnvSpec, parseEnv, parseEnvs, type SavedRuntimes } from "./envs.ts";

const SAVED: Readonly<Record<string, { readonly workdir?: string }>> = {
  "ssh box": { workdir: "/srv" },
  "ssh bare": {},
  "docker gpu": { workdir: "/data" },
  "slurm gpu": {},
};
const saved: SavedRuntimes = (backend, name) => SAVED[`${backend} ${name}`];

const READ: readonly [string, Omit<EnvSpec, "text">][] = [
  ["local/abs/path", { backend: "local", provider: "", host: "", workdir: "/abs/path" }],
  ["local/a@b[c]", { backend: "local", provider: "", host: "", workdir: "/a@b[c]" }],
  ["ssh@box/abs", { backend: "ssh", provider: "box", host: "", workdir: "/abs" }],
  ["ssh@box", { backend: "ssh", provider: "box", host: "", workdir: "/srv" }],
  ["ssh@box/~/x", { backend: "ssh", provider: "box", host: "", workdir: "~/x" }],
  ["ssh@[me@h:22]/w", { backend: "ssh", provider: "", host: "me@h:22", workdir: "/w" }],
  ["ssh@[h]/~", { backend: "ssh", provider: "", host: "h", workdir: "~" }],
  ["ssh@[me@[::1]:2222]/w", { backend: "ssh", provider: "", host: "me@[::1]:2222", workdir: "/w" }],
  ["docker/abs", { backend: "docker", provider: "", host: "", workdir: "/abs" }],
  ["docker@gpu", { backend: "docker", provider: "gpu", host: "", workdir: "/data" }],
  ["swarm/abs", { backend: "swarm", provider: "", host: "", workdir: "/abs" }],
  ["apple-container/abs", { backend: "apple-container", provider: "", host: "", workdir: "/abs" }],
  ["slurm/~/x", { backend: "slurm", provider: "", host: "", workdir: "~/x" }],
];
for (const [text, expected] of READ) {
  test(`reads ${text}`, () => assert.deepEqual(parseEnvs([`w=${text}`], saved), { w: { ...expected, text } }));
}

const EXPECTED = "expected <role>=<backend>[@<provider>][/<workdir>]";
const NO_WORKDIR = `${EXPECTED}; /<workdir> may be left off only for a runtime saved with one`;
const REFUSED: readonly [string, string][] = [
  ["local/x", EXPECTED],
  ["=local/x", EXPECTED],
  ["w=", EXPECTED],
  ["w=docker[x]/y", EXPECTED],
  ["w=ssh@[h]x/y", EXPECTED],
  ["w=ssh@[h/y", EXPECTED],
  ["w=ssh@h]/y", EXPECTED],
  ["w=local", NO_WORKDIR],
  ["w=local/", NO_WORKDIR],
  ["w=docker", NO_WORKDIR],
  ["w=ssh@bare", NO_WORKDIR],
  ["w=ssh@[h]", NO_WORKDIR],
  ["my-w=local/x", "the role 'my-w' is not an identifier"],
  ["w=podman/x", "'podman' is not a backend; one of local, ssh, docker, swarm, apple-container, slurm"],
  ...["w=ssh/x", "w=ssh@/x", "w=ssh@[]/x", "w=ssh"].map((item): [string, string] => [
    item,
    "ssh needs a host: ssh@<saved host>/<workdir>, or ssh@[user@host:port]/<workdir> for a host not saved",
  ]),
  ["w=ssh@who/x", "no ssh host is saved as 'who'; write w=ssh@[who]/<workdir> for a host not saved"],
  ["w=ssh@[-oProxyCommand=x]/y", "'-oProxyCommand=x' is not an ssh host, as [user@]host[:port]"],
  ["w=ssh@[-v@h]/y", "'-v@h' is not an ssh host, as [user@]host[:port]"],
  ["w=ssh@[a b]/y", "'a b' is not an ssh host, as [user@]host[:port]"],
  ["w=ssh@[h:0]/y", "'h:0' is not an ssh host, as [user@]host[:port]"],
  ["w=ssh@[h:70000]/y", "'h:70000' is not an ssh host, as [user@]host[:port]"],
  ...["docker", "swarm", "apple-container", "slurm"].flatMap((backend): [string, string][] => [
    [
      `w=${backend}@[h]/x`,
      `only ssh takes a host nobody saved; ${backend}@<name> names a ${backend} runtime saved on the runtimes page of /settings`,
    ],
    [`w=${backend}@local/x`, `${backend} on this machine names no provider; write w=${backend}/<workdir>`],
    [
      `w=${backend}@who/x`,
      `no ${backend} runtime is saved as 'who'; save one on the runtimes page of /settings, or write w=${backend}/<workdir> for ${backend} on this machine`,
    ],
    [`w=${backend}@/x`, `an @ is written only before a provider; write w=${backend}/<workdir>`],
  ]),
  ["w=local@x/y", "local takes no provider; write w=local/<workdir>"],
  ["w=local@[x]/y", "local takes no provider; write w=local/<workdir>"],
  ["w=local@/y", "local takes no provider; write w=local/<workdir>"],
];
for (const [item, message] of REFUSED) {
  test(`refuses ${item}`, () => {
    assert.throws(() => parseEnvs([item], saved), new Refused(`-e '${item}': ${message}`));
  });
}

test("refuses a role twice, and an empty item", () => {
  assert.throws(() => parseEnvs(["w=local/a,w=local/b"]), new Refused("-e: the role 'w' is given twice"));
  assert.throws(() => parseEnvs(["w=local/a", "w=local/b"]), new Refused("-e: the role 'w' is given twice"));
  assert.throws(() => parseEnvs([" "]), new Refused("-e ' ': an item is empty"));
});

test("whatever is written, it is read or refused, and a host never starts with a dash", () => {
  const words = ["local", "ssh", "docker", "@", "[", "]", "/", "~", ":", "-", "w", "=", ",", "h", "22", " ", "\n"];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { maxLength: 12 }), (parts) => {
      try {
        for (const { host } of Object.values(parseEnvs([`w=${parts.join("")}`], saved))) {
          assert.ok(!host.startsWith("-"));
        }
      } catch (error) {
        assert.ok(error instanceof Refused);
      }
    }),
    { numRuns: 500 },
  );
});

test("a workdir that is not where it seems to be is refused: local/. is the root of the machine", () => {
  for (const written of ["local/.", "local/./x", "local/a/../b", "local/..", "local/~", "local/~/x"]) {
    assert.throws(() => parseEnv("box", written), {
      name: "Refused",
      message: `-e 'box=${written}': a workdir is absolute, and has no ., no .. and no ~ in it, as box=local/srv/work`,
    });
  }
  assert.equal(parseEnv("box", "local/a.b/..c/d..").workdir, "/a.b/..c/d..");
});
