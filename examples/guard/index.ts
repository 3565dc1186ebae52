/** Does the task, refused two things on the way: deleting trees, and pushing. */
import { agent, flow, localEnv, type PreToolUseHookParams } from "hmz/flows";

// #region refuse
const REFUSED: readonly { readonly words: RegExp; readonly why: string }[] = [
  {
    words: /\brm\s+(-\w*[rR]\w*f|-\w*f\w*[rR]|-[rR]\s+-f|-f\s+-[rR])/,
    why: "name the files, and delete them one by one",
  },
  { words: /\bgit\b[^\n;&|]*\bpush\b/, why: "commit; a person pushes" },
];

function refused({ tool, input }: PreToolUseHookParams) {
  const said = JSON.stringify(input);
  const found = REFUSED.find(({ words }) => words.test(said));
  return found ? { block: true, reason: `${tool} may not do that here: ${found.why}` } : {};
}
// #endregion

export const guard = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv() } },
  async (task, { agents: { worker }, envs: { workspace } }) => {
    worker.onPreToolUse(refused);
    return worker.run(task, { env: workspace });
  },
);
