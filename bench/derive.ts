/** What a flow waits for a directory of its own: 2,000 files. Floor: the same programs by hand, from one shell. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { locks } from "../src/home/lock.ts";
import { localMachine } from "../src/machine/local.ts";
import { paired, report } from "./measure.ts";

const FILES = 2_000;

const root = realpathSync(mkdtempSync(join(tmpdir(), "hmz-bench-derive-")));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
const repo = join(root, "repo");
for (let index = 0; index < FILES; index++) {
  const file = join(repo, `src/${index % 40}/file-${index}.txt`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${index}\n`.repeat(50));
}
await shell(repo, "git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm one");
const { derive } = localMachine({ derive: { envs: join(root, "envs"), locks } });
if (!derive) throw new Error("nothing is derived here");

async function shell(cwd: string, script: string): Promise<void> {
  const child = spawn("sh", ["-c", script], { cwd, stdio: ["ignore", "ignore", "inherit"] });
  const [status] = (await once(child, "exit")) as [number | null];
  if (status !== 0) throw new Error(`${script}: ${status}`);
}

/** Does a thing so many times, another one each time. */
const times = (work: (name: string) => Promise<unknown>) => async (count: number) => {
  for (let at = 0; at < count; at++) await work(`x${process.hrtime.bigint()}`);
};

const holder = {};
const holding = { holder, outlives: false };
const BY_HAND = `
export GIT_INDEX_FILE="$(git rev-parse --absolute-git-dir)/by-hand" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
cp -p .git/index "$GIT_INDEX_FILE"; staged=$(git write-tree); git add -A; tree=$(git write-tree)
rm "$GIT_INDEX_FILE"; head=$(git rev-parse HEAD); kept=$(git commit-tree $staged -p $head -m index)
git update-ref refs/by-hand/$1 $(git commit-tree $tree -p $head -p $kept -m snapshot)
`;

for (const [title, count, ours, byHand] of [
  [
    "worktree, made and removed",
    1,
    async () => shell(repo, `git worktree remove --force ${await derive.worktree(repo, {})}`),
    async (name: string) => {
      await shell(repo, `git worktree add --quiet --detach ${root}/${name} HEAD`);
      await shell(repo, `git worktree remove --force ${root}/${name}`);
    },
  ],
  [
    "temp clone, made and removed",
    1,
    async (name: string) => {
      await derive.tempClone(repo, name, holding);
      await derive.destroyTempClone(repo, name, holder);
    },
    (name: string) => shell(root, `cp -a --reflink=auto repo ${name} && rm -rf ${name}`),
  ],
  [
    "scratch, made and removed",
    50,
    async (name: string) => {
      await derive.scratch(repo, name, holding);
      await derive.destroyScratch(repo, name, holder);
    },
    async (name: string) => {
      await mkdir(join(root, name), { recursive: true });
      await rm(join(root, name), { recursive: true, force: true });
    },
  ],
  [
    "snapshot",
    5,
    (name: string) => derive.snapshot(repo, name),
    (name: string) => shell(repo, `set -- ${name}${BY_HAND}`),
  ],
] as const) {
  const figures = await paired(
    [
      { name: `hmz: ${title}`, count, run: times(ours) },
      { name: "floor: by hand", count, run: times(byHand) },
    ],
    5,
  );
  report(title, figures);
}
