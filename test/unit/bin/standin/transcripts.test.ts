import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createJudge } from '../../../../bin/standin/index.ts';
import { conversationPlans, growConversation, seededPlan, straightTo } from '../../../helpers/transcripts.ts';

describe('generated conversations', () => {
  it('are never refused when nothing changes them', async () => {
    await fc.assert(
      fc.asyncProperty(conversationPlans(), async (plan) => {
        const steps = await growConversation(plan, straightTo(createJudge()));
        const refusals = steps.map((step) => step.reply.refusal?.message).filter(Boolean);
        expect(refusals).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('are the same for the same seed', async () => {
    const secret = Buffer.alloc(32, 1);
    const bodies = async () => {
      const steps = await growConversation(seededPlan(11), straightTo(createJudge({ secret })));
      return steps.map((step) => step.request.headers);
    };
    expect(await bodies()).toEqual(await bodies());
    expect(seededPlan(11)).toEqual(seededPlan(11));
    expect(seededPlan(11)).not.toEqual(seededPlan(12));
  });

  it('send every tool result and keep the newest prompt', async () => {
    const plan = seededPlan(3, { turns: 6 });
    const steps = await growConversation(plan, straightTo(createJudge()));
    const expected = plan.turns.reduce((sum, turn) => sum + turn.rounds.length + 1, 0);
    expect(steps).toHaveLength(expected);
    for (const { request } of steps) {
      const prompt = plan.turns[request.turn]?.prompt;
      expect(JSON.stringify(request.body.messages)).toContain(JSON.stringify(prompt));
    }
  });
});
