import { describe, expect, it } from 'vitest';
import { codingSession } from '../../../../bench/cost-story.ts';
import { Config } from '../../../../common/config.ts';
import { cutRule } from '../../../../engine/cut-config.ts';
import { sumBill } from '../../../../proxy/ledger/cost.ts';
import {
  type BalanceChange,
  createLedgerState,
  LOSS_LIMIT,
  NEW_BALANCE,
  updateBalance,
} from '../../../../proxy/ledger/ledger.ts';
import { type Balance, EMPTY_TOTALS, type LedgerRecord } from '../../../../proxy/ledger/store.ts';
import type { RewriterConfig } from '../../../../proxy/rewrite/index.ts';
import { createMemoryRecords } from '../../../helpers/memory-records.ts';
import { type BilledStep, playBilled } from '../../../helpers/metered-run.ts';

const OPUS_5_5 = 'claude-opus-5-5';
const OPUS_4_8 = 'claude-opus-4-8';

function getConfig(trim: object = {}): RewriterConfig {
  const { inject, trim: rule } = Config.parse({ trim });
  return { ...inject, memoryDeadlineMs: 10_000, cut: cutRule(rule) };
}

/** Cuts at every prompt, however little that drops. */
const WASTEFUL: RewriterConfig = {
  ...getConfig(),
  cut: {
    triggerTokens: 2_000,
    targetTokens: 0,
    keepTurns: 3,
    keepTokens: 500,
    keepRounds: 1_000,
    keepRoundTokens: 50,
    minDropShare: 0.02,
    margin: 0,
    lossShare: 1,
    pressureShare: 0.8,
  },
};

const sum = (steps: readonly BilledStep[], of: (step: BilledStep) => number): number =>
  steps.reduce((total, step) => total + of(step), 0);

/** At most this share apart. */
function expectNear(value: number, wanted: number, share: number): void {
  expect(Math.abs(value - wanted)).toBeLessThanOrEqual(share * Math.abs(wanted));
}

describe('the ledger', { timeout: 30_000 }, () => {
  it('knows what the same conversation would have cost untouched, to a hundredth, over a long break and a restart', async () => {
    const story = codingSession(30, OPUS_4_8);
    const { steps, ledger } = await playBilled(story.plan, {
      config: getConfig(),
      atMs: ({ atMs, turn }) => atMs + (turn >= 20 ? 7_200_000 : 0),
      restarts: (index) => index === 70,
    });
    const totals = ledger.totals(0);
    expect(totals.requests).toBe(steps.length);
    expect(totals.sent).toBe(sum(steps, ({ usage }) => sumBill(usage)));
    expectNear(
      totals.original,
      sum(steps, ({ direct }) => sumBill(direct)),
      0.01,
    );
    expectNear(
      totals.sentEquivalents,
      sum(steps, ({ costs }) => costs.sent),
      0.0001,
    );
    expectNear(
      totals.untouchedEquivalents,
      sum(steps, ({ costs }) => costs.direct),
      0.01,
    );
    expect(totals.original).toBeGreaterThan(totals.sent * 1.3);
    expect(totals.untouchedUsd - totals.sentUsd).toBeGreaterThan(0);
    expect(ledger.disabledConversations()).toEqual([]);
  });

  it('takes the bill of an untouched request as what it would have been', async () => {
    const { steps, ledger } = await playBilled(codingSession(6, OPUS_5_5).plan, {
      config: { ...getConfig({ mode: 'off' }), retrieval: 'off', systemTokens: 0 },
    });
    const totals = ledger.totals(0);
    expect(totals.original).toBe(totals.sent);
    expect(totals.untouchedUsd).toBe(totals.sentUsd);
    expect(totals.original).toBe(sum(steps, ({ direct }) => sumBill(direct)));
  });

  it('sums up recent sessions without those that only an import made calls for', async () => {
    const { steps, ledger } = await playBilled(codingSession(2, OPUS_5_5).plan, { config: getConfig() });
    const recent = ledger.recentTotals(0);
    expect(recent.requests).toBe(steps.length);
    ledger.recordOwnCall({ conversation: 'imported', calls: 1, tokens: 10, usd: 1 });
    expect(ledger.recentTotals(0)).toEqual(recent);
    expect(ledger.recentTotals(Number.POSITIVE_INFINITY).requests).toBe(0);
  });

  it('claims no saving where upstream had let go of the cache by itself', async () => {
    const evicted = ({ usage }: Pick<BilledStep, 'usage'>) => ({
      ...usage,
      cacheRead: 0,
      cacheWrite1h: usage.cacheWrite1h + usage.cacheRead,
    });
    const story = codingSession(20, OPUS_4_8);
    const { ledger } = await playBilled(story.plan, { config: getConfig(), bill: (usage) => evicted({ usage }) });
    const totals = ledger.totals(0);
    // All was written at double the price, on both courses: what is saved is what was not sent, no more.
    const spared = 2 * (totals.original - totals.sent);
    expectNear(totals.untouchedEquivalents - totals.sentEquivalents, spared, 0.05);
  });

  it('switches trimming off where it loses, replays the current plan, and knows it after a restart', async () => {
    const records: LedgerRecord[] = [];
    const { steps, rewriter, ledger } = await playBilled(codingSession(45, OPUS_5_5).plan, {
      config: WASTEFUL,
      store: createMemoryRecords(records),
      restarts: (index) => index === 160,
    });
    const [off] = ledger.disabledConversations();
    expect(off?.off?.because).toMatch(/^3 requests in a row ended with a net loss: \$\d/);
    const endsAt = steps.findIndex((step) => step.request.atMs === off?.off?.atMs);
    expect(endsAt).toBeGreaterThan(LOSSES_AT_LEAST);
    const receipts = rewriter.receipts();
    expect(receipts.at(0)?.economics.trimming_off).toBe(off?.off?.because);
    const last = receipts.at(0);
    expect(last?.edits.length).toBeGreaterThan(0); // the plan in force goes on
    expect(last?.added.map(({ text }) => text)).toEqual(
      receipts.find(({ request_id }) => request_id === `r${endsAt}`)?.added.map(({ text }) => text),
    );
    const paused = receipts.filter(({ economics }) => economics.trimming_off !== null).map(({ request_id: id }) => id);
    const cuts = records.flatMap((record) => (record.kind === 'request' && record.cut ? [record.requestId] : []));
    const before = cuts.map((id) => `r${Number(id.slice(1)) - 1}`);
    expect(paused.length).toBeGreaterThan(LOSSES_AT_LEAST);
    expect(before.filter((id) => paused.includes(id))).toEqual([]);
  });

  it('pauses trimming until the loss is made good, and for good after a refusal', () => {
    const state = createLedgerState({ tolerance: 0.05, credit: 0, longestHorizon: 60 });
    let at = 0;
    const play = (untouched: number, billed: number): void => {
      at += 1;
      const bill = (input: number) => ({ input, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 });
      const about = { requestId: `r${at}`, atMs: at, conversation: 'c', root: '', model: OPUS_4_8, rewritten: true };
      const figures = { billed: bill(billed), untouched: bill(untouched), output: 0, touched: [] };
      state.apply({ kind: 'request', ...about, counts: true, cut: false, ...figures });
    };
    for (let request = 0; request < 3; request += 1) play(1_000, 1_500);
    expect(state.conversation('c')?.off?.because).toMatch(/net loss/);
    play(1_000, 900);
    expect(state.disabledConversations()).toHaveLength(1);
    for (let request = 0; request < 10; request += 1) play(1_000, 800);
    expect(state.disabledConversations()).toEqual([]);
    state.apply({ kind: 'refused', atMs: at, conversation: 'c', isLast: true });
    for (let request = 0; request < 10; request += 1) play(1_000, 100);
    expect(state.disabledConversations()).toHaveLength(1);
  });

  it('lets a conversation that pays go on', async () => {
    for (const model of [OPUS_5_5, OPUS_4_8]) {
      const story = codingSession(40, model);
      const { ledger } = await playBilled(story.plan, { config: getConfig() });
      expect(ledger.disabledConversations()).toEqual([]);
    }
  });
});

const LOSSES_AT_LEAST = 3;

it('a conversation that its client compacts for ever is known by its newest beginnings', () => {
  const book = createLedgerState({ tolerance: 0.05, credit: 10_000, longestHorizon: 60 });
  const about = { lastAtMs: 0, rewritten: true, off: null, totals: EMPTY_TOTALS, balance: NEW_BALANCE };
  for (let at = 0; at <= 4_000; at += 1) {
    book.apply({ kind: 'conversation', conversation: { id: 'c', root: `root ${at}`, ...about } });
  }
  expect(book.wasRewritten('a fork', 'root 0')).toBe(false);
  expect(book.wasRewritten('a fork', 'root 1')).toBe(true);
  expect(book.wasRewritten('a fork', 'root 4000')).toBe(true);
});

const rule = { tolerance: 0.02, credit: 100, longestHorizon: 30 };
const quiet: BalanceChange = { untouchedUsd: 1, savedUsd: 0, tokenUsd: 0.001, returnUsd: null };
/** Costs 8 at once and promises 1 for each later request. */
const cut: BalanceChange = { ...quiet, savedUsd: -8, returnUsd: 1 };

function getCourse(movements: readonly BalanceChange[], from: Balance = NEW_BALANCE): Balance[] {
  const balances: Balance[] = [];
  for (const movement of movements) balances.push(updateBalance(balances.at(-1) ?? from, movement, rule));
  return balances;
}

describe('a net loss', () => {
  it('is not a cut that pays back as promised', () => {
    const paying = Array.from({ length: 20 }, () => ({ ...quiet, savedUsd: 1 }));
    expect(getCourse([quiet, cut, ...paying]).map(({ streak }) => streak)).toEqual(Array(22).fill(0));
  });

  it('is a cut that does not: three in a row at most three requests after its horizon', () => {
    const streaks = getCourse([quiet, cut, ...Array(12).fill(quiet)]).map(({ streak }) => streak);
    expect(streaks.slice(0, 2)).toEqual([0, 0]);
    const ends = streaks.indexOf(LOSS_LIMIT);
    expect(ends).toBeGreaterThan(LOSS_LIMIT);
    expect(ends).toBeLessThanOrEqual(1 + 8 + LOSS_LIMIT);
  });

  it('is found however often a losing conversation cuts', () => {
    const thrash = Array.from({ length: 60 }, (_, at) => (at % 2 === 0 ? cut : quiet));
    expect(getCourse(thrash).some(({ streak }) => streak >= LOSS_LIMIT)).toBe(true);
  });

  it('ends its series with the first request that pays again', () => {
    const losing = getCourse([{ ...quiet, savedUsd: -1 }, quiet]);
    expect(losing.at(-1)?.streak).toBe(2);
    expect(getCourse([{ ...quiet, savedUsd: 5 }], losing.at(-1)).at(-1)?.streak).toBe(0);
  });

  it('is not what memory may cost: the credit, or its share of a long conversation', () => {
    const talk = Array.from({ length: 50 }, () => ({ ...quiet, savedUsd: -0.019 }));
    expect(getCourse([{ ...quiet, savedUsd: -0.09 }, quiet, quiet, quiet]).every(({ streak }) => streak === 0)).toBe(
      true,
    );
    expect(getCourse(talk).every(({ streak }) => streak === 0)).toBe(true);
    expect(getCourse([{ ...quiet, savedUsd: -0.12 }]).at(-1)?.streak).toBe(1);
  });

  it('gives no cut longer than the longest horizon, and none to a cut that promises nothing', () => {
    expect(getCourse([{ ...cut, savedUsd: -900 }]).at(-1)?.investments).toEqual([{ usd: 900, horizon: 30, left: 30 }]);
    expect(getCourse([{ ...cut, returnUsd: -1 }]).at(-1)).toMatchObject({ investments: [], streak: 1 });
    expect(getCourse([{ ...cut, savedUsd: 2 }]).at(-1)).toMatchObject({ investments: [], streak: 0 });
  });
});
