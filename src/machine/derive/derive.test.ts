import { join } from "node:path";
import { locks } from "../../home/lock.ts";
import { deriveConformance } from "../../../test/conformance/derive.ts";
import { git, put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { localMachine } from "../local.ts";

deriveConformance("this machine", async () => {
  const root = temporaryDirectory("derive");
  const workdir = join(root, "repo");
  put(root, { "repo/a.txt": "a\n", "repo/lib/b.txt": "b\n", "bare/c.txt": "c" });
  git(workdir, "init", "-q", "-b", "main");
  git(workdir, "add", "-A");
  git(workdir, "commit", "-qm", "one");
  const machine = localMachine({ derive: { envs: join(root, "home", "envs"), locks } });
  return { machine, workdir, bare: { machine, workdir: join(root, "bare") } };
});
