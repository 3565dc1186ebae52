import { deriveConformance } from "../../test/conformance/derive.ts";
import { FakeEnv } from "./fake-env.ts";

deriveConformance("a fake machine", async () => {
  const machine = new FakeEnv({ workdir: "/top/work", files: { "a.txt": "a\n", "lib/b.txt": "b\n" } });
  const bare = new FakeEnv({ workdir: "/bare", files: { "c.txt": "c" }, repo: false });
  return { machine, workdir: machine.workdir, bare: { machine: bare, workdir: bare.workdir } };
});
