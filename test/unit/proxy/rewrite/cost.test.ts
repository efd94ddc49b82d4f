import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { countTokens } from '../../../../common/text.ts';
import { openCostLedger } from '../../../../proxy/ledger/index.ts';
import { allowTokens } from '../../../../proxy/rewrite/cost.ts';
import { earlyConfig } from '../../../fuzz/rewriter-rig.ts';
import { createFakeMemory } from '../../../helpers/fake-memory.ts';
import { createMemoryRecords } from '../../../helpers/memory-records.ts';
import { play } from '../../../helpers/rewriter-play.ts';
import { seededPlan } from '../../../helpers/transcripts.ts';

const rule = { costShare: 0.015, leastTokens: 300 };
const warm = { untouched: 0, saved: 0, cold: false, prices: { read: 0.1, write: 1.25 }, addedTokens: 0 };

describe('what memory may add', () => {
  it('is the least in a short conversation, whatever it has cost', () => {
    expect(allowTokens({ ...warm, cold: true, receivedTokens: 12_000 }, rule)).toBe(300);
    expect(allowTokens({ ...warm, receivedTokens: 12_000, addedTokens: 300 }, rule)).toBe(0);
  });

  it('is a share of a large request, but the least at once, so that the next prompts have the rest', () => {
    const large = { ...warm, cold: true, receivedTokens: 100_000 };
    expect(allowTokens(large, rule)).toBe(300);
    expect(allowTokens({ ...large, addedTokens: 300 }, rule)).toBe(300);
    expect(allowTokens({ ...large, addedTokens: 1_400 }, rule)).toBe(100);
  });

  it('waits until the share of the cost has paid for it', () => {
    const standing = { ...warm, receivedTokens: 60_000, addedTokens: 300 };
    expect(allowTokens({ ...standing, untouched: 20_000, saved: -600 }, rule)).toBe(0);
    expect(allowTokens({ ...standing, untouched: 40_000, saved: -600 }, rule)).toBe(48);
    expect(allowTokens({ ...standing, untouched: 100_000, saved: -600 }, rule)).toBe(300);
  });

  it('is what a cut leaves out, and the least', () => {
    const cut = { ...warm, untouched: 50_000, saved: -10_000, receivedTokens: 40_000 };
    expect(allowTokens({ ...cut, addedTokens: -12_000 }, rule)).toBe(12_300);
  });

  const request = fc.record({
    grows: fc.nat(20_000),
    wanted: fc.nat(4_000),
    cold: fc.boolean(),
  });
  const prices = fc.record({
    read: fc.constantFrom(0.025, 0.05, 0.1),
    write: fc.constantFrom(1.25, 2),
  });

  it('never costs more than the share, or than carrying the least', () => {
    fc.assert(
      fc.property(fc.nat(40_000), prices, fc.array(request, { minLength: 1, maxLength: 80 }), (head, prices, all) => {
        let [size, untouched, memory, added, least] = [head, 0, 0, 0, 0];
        for (const [at, { grows, wanted, ...request }] of all.entries()) {
          const cold = at === 0 || request.cold;
          const price = cold ? prices.write : prices.read;
          const receivedTokens = size + grows;
          const account = { untouched, saved: -memory, cold, prices, receivedTokens, addedTokens: added };
          const fresh = Math.min(wanted, allowTokens(account, rule));
          untouched += cold ? prices.write * receivedTokens : prices.read * size + prices.write * grows;
          memory += price * added + prices.write * fresh;
          least += at === 0 ? prices.write * rule.leastTokens : price * rule.leastTokens;
          size = receivedTokens;
          added += fresh;
          expect(memory).toBeLessThanOrEqual(Math.max(rule.costShare * untouched, least) + 1e-6);
        }
      }),
    );
  });
});

describe('a conversation', () => {
  it('carries no more than the least until it is cut, and then all of its context', async () => {
    const memory = createFakeMemory();
    const lines = Array.from({ length: 30 }, (_, at) => {
      const nodeId = `mem_20261101_000000_c000${at}`;
      return { nodeId, text: `- [${nodeId}] what was found out on day ${at}`, origin: 'user' as const };
    });
    const config = { ...earlyConfig(), costShare: 0, leastTokens: 300 };
    const context = async () => ({ brief: [], lines });
    const { sent } = await play(seededPlan(7, { turns: 12 }), {
      config,
      memory: { ...memory, sessionContext: context },
    });
    const blockTokens = sent.map(({ plan }) => countTokens(plan?.systemBlock ?? ''));
    const first = sent.findIndex(({ plan }) => plan?.cut != null);
    expect(first).toBeGreaterThan(0);
    for (const { plan } of sent.slice(0, first)) {
      const texts = [plan?.systemBlock ?? '', ...(plan?.injections ?? []).map(({ text }) => text)];
      expect(texts.reduce((sum, text) => sum + countTokens(text), 0)).toBeLessThanOrEqual(300);
    }
    expect(blockTokens[0]).toBeGreaterThan(100);
    expect(blockTokens.at(first)).toBeGreaterThan(400);
  });

  it('carries no heading of a brief whose lines have no room', async () => {
    const brief = ['## Active Work Context', `- Goal: ${'the retry of the client '.repeat(20)}`];
    const config = { ...earlyConfig(), costShare: 0, leastTokens: 90 };
    const context = async () => ({ brief, lines: [] });
    const memory = { ...createFakeMemory(), recall: async () => [], sessionContext: context };
    const { sent } = await play(seededPlan(7, { turns: 1 }), { config, memory });
    expect(sent[0]?.plan?.systemBlock ?? null).toBeNull();
  });

  it('that lost money adds nothing, and is cut where the cut is free', async () => {
    const open = async (stepMs: number) => {
      let nowMs = 0;
      const clock = { now: () => (nowMs += stepMs) };
      const ledger = await openCostLedger({
        store: createMemoryRecords(),
        rule: { tolerance: 0, credit: 0, longestHorizon: 60 },
        clock,
        log: silentLog,
      });
      const config = earlyConfig({ margin: 0 });
      const deps = { clock, ledger: { ...ledger, disabledBy: () => 'loss' as const } };
      return play(seededPlan(7, { turns: 12 }), { config, deps });
    };
    const [warm, cold] = [await open(0), await open(7_200_000)];
    expect([...warm.refusals, ...cold.refusals]).toEqual([]);
    expect(warm.sent.at(-1)?.plan?.cut ?? null).toBeNull();
    expect(cold.sent.at(-1)?.plan?.cut).toBeTruthy();
    for (const { plan } of [...warm.sent, ...cold.sent]) {
      expect(plan?.systemBlock ?? null).toBeNull();
      expect(plan?.injections ?? []).toEqual([]);
    }
  });
});
