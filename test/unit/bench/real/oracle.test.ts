import fc from 'fast-check';
import { expect, it } from 'vitest';
import { findLeastCost } from '../../../../bench/real/oracle.ts';
import { Config } from '../../../../common/config.ts';
import { cutRule } from '../../../../engine/cut-config.ts';
import type { CutRule } from '../../../../proxy/rewrite/index.ts';
import { simulateConversation, sumRequests } from '../../../../proxy/transcript/index.ts';
import { pastConversation, pastConversations } from '../../../helpers/past-conversations.ts';

const { trim, inject } = Config.parse({});
const RULE = { cut: cutRule(trim) as CutRule, plan: inject };

it('costs what the untouched requests cost where nothing may be cut', () => {
  const short = pastConversation([{ promptTokens: 100, rounds: [500, 500], pauseMs: 0 }]);
  const { direct } = sumRequests(simulateConversation(short, RULE));
  expect(findLeastCost(short, RULE)).toBeCloseTo(direct.equivalents, 0);
});

it('is never above the untouched requests and the product', () => {
  fc.assert(
    fc.property(pastConversations(), (conversation) => {
      const { direct, sent } = sumRequests(simulateConversation(conversation, RULE));
      const least = findLeastCost(conversation, RULE);
      expect(least).toBeLessThanOrEqual(1.001 * direct.equivalents);
      expect(least).toBeLessThanOrEqual(1.001 * sent.equivalents);
    }),
    { numRuns: 25 },
  );
});
