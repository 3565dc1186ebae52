/** git for tests: repositories of a test's own, with nothing of the person's configuration. */

import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { temporaryDirectory } from "./temporary.ts";

const ENV = {
  PATH: process.env["PATH"],
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.com",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.com",
};

export function git(cwd: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd, env: ENV, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Contents by path; `{ link }` makes a symbolic link. */
export type Files = Readonly<Record<string, string | { readonly link: string }>>;

export function put(directory: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    if (typeof content === "string") writeFileSync(file, content);
    else symlinkSync(content.link, file);
  }
}

export interface Repository {
  readonly directory: string;
  readonly url: string;
  commit(files: Files): void;
}

/** A repository with one commit. */
export function repository(files: Files): Repository {
  const directory = temporaryDirectory("repository");
  git(directory, "init", "--quiet", "--initial-branch=main");
  const made: Repository = {
    directory,
    url: pathToFileURL(directory).href,
    commit(files) {
      put(directory, files);
      git(directory, "add", "--all");
      git(directory, "commit", "--quiet", "--message=x");
    },
  };
  made.commit(files);
  return made;
}
