import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  conversationPlans,
  growConversation,
  type Json,
  replyFrom,
  type Step,
  seededPlan,
  straightTo,
} from '../../helpers/transcripts.ts';
import { createJudge } from '../../mock-anthropic/index.ts';
import { getRules } from '../../mock-anthropic/models.ts';
import { invalid } from '../../mock-anthropic/refusal.ts';

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

  it('are billed for every token exactly once, and read what the request before wrote', async () => {
    await fc.assert(
      fc.asyncProperty(conversationPlans({ turns: 3, bulk: 4_000 }), async (plan) => {
        const judge = createJudge();
        let cached = 0;
        const steps = await growConversation(plan, (request) => {
          const ask = { body: request.bytes, headers: request.headers, atMs: request.atMs };
          const counted = judge.judge({ ...ask, path: 'count_tokens' });
          const verdict = judge.judge(ask);
          if (verdict.refusal || counted.refusal) return { refusal: invalid('refused') };
          const { input, cacheRead, cacheWrite5m, cacheWrite1h } = verdict.usage;
          expect(input + cacheRead + cacheWrite5m + cacheWrite1h).toBe(counted.usage.input);
          expect(input).toBeGreaterThanOrEqual(0);
          // Models that drop the thinking of older turns lose the prefix with it; so does the first image.
          if (getRules(plan.model).keepsThinking && !JSON.stringify(request.body).includes('image/png')) {
            expect(cacheRead).toBeGreaterThanOrEqual(cached);
          }
          cached = cacheRead;
          return replyFrom(verdict, request);
        });
        expect(steps.at(-1)?.reply.refusal).toBeNull();
      }),
      { numRuns: 60 },
    );
  });
});

describe('a damaged conversation is refused', () => {
  const damages: Readonly<Record<string, (messages: Json[], at: number) => Json[] | null>> = {
    'a lost tool result': (messages) => without(messages, (message) => has(message, 'tool_result')),
    'a lost tool call': (messages) => without(messages, (message) => has(message, 'tool_use')),
    'an assistant message first': (messages) =>
      messages.length > 2 ? messages.slice(messages.findIndex(isAssistant)) : null,
    'a changed first message behind bound thinking': (messages) =>
      messages.some((message) => has(message, 'thinking'))
        ? [{ role: 'user', content: 'other' }, ...messages.slice(1)]
        : null,
  };

  it.each(Object.entries(damages))('by %s', async (_, damage) => {
    let tried = 0;
    await fc.assert(
      fc.asyncProperty(conversationPlans({ models: ['claude-opus-5-5'], turns: 3 }), fc.nat(), async (plan, at) => {
        const judge = createJudge();
        const steps = await growConversation(plan, straightTo(judge));
        const { request } = steps.at(-1) as Step;
        const messages = damage(request.body.messages as Json[], at);
        if (!messages) return;
        tried += 1;
        const verdict = judge.judge({ ...request, body: { ...request.body, messages } });
        expect(verdict.refusal?.status).toBe(400);
      }),
      { numRuns: 60 },
    );
    expect(tried).toBeGreaterThan(20);
  });
});

function has(message: Json, type: string): boolean {
  return Array.isArray(message.content) && message.content.some((block: Json) => block.type === type);
}

function isAssistant(message: Json): boolean {
  return message.role === 'assistant';
}

function without(messages: Json[], lost: (message: Json) => boolean): Json[] | null {
  const index = messages.findIndex(lost);
  return index < 0 ? null : messages.toSpliced(index, 1);
}
