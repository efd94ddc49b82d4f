import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { cutRule } from '../../../../engine/cut-config.ts';
import { inputEquivalents } from '../../../../proxy/ledger/cost.ts';
import { findHeadTokens, simulateConversation, sumRequests } from '../../../../proxy/transcript/index.ts';
import type { PastRequest } from '../../../../proxy/transcript/request.ts';
import { findModelTraits } from '../../../../proxy/wire/models.ts';
import { pastConversation, pastConversations } from '../../../helpers/past-conversations.ts';

const { trim, inject } = Config.parse({});
const RULE = { cut: cutRule(trim), plan: inject };
const LONG = Array.from({ length: 24 }, () => ({ promptTokens: 200, rounds: [6_000, 6_000, 6_000], pauseMs: 30_000 }));

function isToolRound(request: PastRequest | undefined): boolean {
  return JSON.stringify(request?.messages.at(-1)).includes('"tool_result"');
}

describe('a simulated conversation', () => {
  it('costs less with cuts where it is long, and its context stays small', () => {
    const { cuts, direct, sent } = sumRequests(simulateConversation(pastConversation(LONG), RULE));
    expect(cuts).toBeGreaterThan(0);
    expect(sent.usd).toBeLessThan(0.8 * direct.usd);
    expect(sent.peak).toBeLessThan(direct.peak / 2);
  });

  it('is billed as the recorded model and lifetime, or as the rule names them', () => {
    const recorded = simulateConversation(pastConversation(LONG.slice(0, 1), { ttl: '1h' }), RULE);
    expect(recorded[0]).toMatchObject({ model: 'claude-opus-4-8', direct: { cacheWrite5m: 0 } });
    const named = simulateConversation(pastConversation(LONG.slice(0, 1)), { ...RULE, model: 'claude-x', ttl: '1h' });
    expect(named[0]).toMatchObject({ model: 'claude-x', direct: { cacheWrite5m: 0 } });
  });

  it('of a subagent is unchanged', () => {
    const requests = simulateConversation({ ...pastConversation(LONG), agentId: 'a1' }, RULE);
    for (const { direct, sent } of requests) expect(sent).toEqual(direct);
  });

  it('without cuts only ever sends more, and each request has its own bill', async () => {
    await fc.assert(
      fc.property(pastConversations(), (conversation) => {
        const requests = simulateConversation(conversation, { ...RULE, cut: null });
        expect(requests).toHaveLength(conversation.requests.length);
        const { direct, sent, cuts } = sumRequests(requests);
        expect(cuts).toBe(0);
        expect(sent.tokens).toBeGreaterThanOrEqual(direct.tokens);
      }),
      { numRuns: 25 },
    );
  });

  it('is never behind by more than its share, however early it ends but right after a cut in a tool loop', () => {
    const longTurn = fc.record({
      promptTokens: fc.integer({ min: 5, max: 500 }),
      rounds: fc.array(fc.integer({ min: 10, max: 4_000 }), { maxLength: 25 }),
      pauseMs: fc.constantFrom(10_000, 60_000, 400_000, 7_200_000),
    });
    const prices = fc.constantFrom(
      { model: 'claude-opus-4-8', ttl: '5m' } as const,
      { model: 'claude-opus-5-5', ttl: '1h' } as const,
      { model: 'claude-fable-5-1', ttl: '5m' } as const,
    );
    const conversations = fc.array(longTurn, { minLength: 3, maxLength: 12 }).map((turns) => pastConversation(turns));
    let cuts = 0;
    const property = fc.property(conversations, prices, fc.boolean(), (conversation, { model, ttl }, hasMemory) => {
      const plan = hasMemory ? inject : { ...inject, costShare: 0, leastTokens: 0 };
      let [untouched, cost, least] = [0, 0, 0];
      const requests = simulateConversation(conversation, { ...RULE, plan, model, ttl });
      for (const [at, { direct, sent, isCut }] of requests.entries()) {
        untouched += inputEquivalents(model, direct);
        cost += inputEquivalents(model, sent);
        cuts += isCut ? 1 : 0;
        const { cacheRead, cacheWrite1h, cacheWrite5m } = findModelTraits(model);
        const write = ttl === '1h' ? cacheWrite1h : cacheWrite5m;
        least += plan.leastTokens * (direct.cacheRead === 0 ? write : cacheRead);
        if (isCut && isToolRound(conversation.requests[at])) continue;
        const most = Math.max(trim.lossShare * untouched, least) + 1e-6;
        // A call of `expect` takes longer than a request.
        if (cost - untouched > most) throw new Error(`request ${at} lost ${cost - untouched} of at most ${most}`);
      }
    });
    fc.assert(property, { numRuns: 60 });
    expect(cuts).toBeGreaterThan(30);
  });

  it('ends the same when it is played again', () => {
    fc.assert(
      fc.property(pastConversations(), (conversation) => {
        expect(simulateConversation(conversation, RULE)).toEqual(simulateConversation(conversation, RULE));
      }),
      { numRuns: 10 },
    );
  });
});

it('tools and system prompt have the tokens that the API counted beside the messages', () => {
  const turns = [{ promptTokens: 100, rounds: [], pauseMs: 0 }];
  expect(findHeadTokens(pastConversation(turns, { promptTokens: 20_100 }))).toBe(20_000);
  expect(findHeadTokens(pastConversation(turns))).toBe(12_000);
});
