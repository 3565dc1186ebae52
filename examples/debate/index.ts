/** Two agents argue about a question until a third finds that they agree; what they agree on is the answer. */
import { agent, flow, type Session, z } from "hmz/flows";

const Verdict = z.object({
  agreed: z.boolean().describe("whether both now hold the same answer"),
  answer: z.string().describe("the answer they agree on, or the better one so far, with its reason"),
});

export const debate = flow(
  {
    agents: { first: agent(), second: agent(), judge: agent() },
    params: z.object({ rounds: z.number().int().min(1).max(8).default(3) }),
  },
  async (question, { agents: { first, second, judge }, params: { rounds }, ctx }) => {
    const sessions: readonly [Session, Session] = [await first.spawn(), await second.spawn()];
    // Both answer before either has seen the other's: the first to speak would lead.
    let [one, two] = await ctx.group((group) =>
      Promise.all([
        group.run(() => first.run(question, { session: sessions[0] })),
        group.run(() => second.run(question, { session: sessions[1] })),
      ]),
    );
    for (let round = 1; ; round++) {
      const verdict = await judge.run(
        `Question: ${question}\n\nA says:\n${one}\n\nB says:\n${two}\n\nDo they agree? Judge the reasons, not the tone.`,
        { outputSchema: Verdict },
      );
      if (verdict.agreed || round === rounds) return { round, ...verdict };
      one = await first.run(answering(two), { session: sessions[0] });
      two = await second.run(answering(one), { session: sessions[1] });
    }
  },
);

function answering(other: string): string {
  return `Another engineer answers:\n\n${other}\n\nSay where they are right and where they are wrong, then your answer.`;
}
