import { beforeEach, describe, expect, it } from 'vitest';
import type { Json } from '../../helpers/transcripts.ts';
import { createJudge, type Judge } from '../../mock-anthropic/index.ts';

const MINUTE = 60_000;
const BREAK = { cache_control: { type: 'ephemeral' } };
const HOUR = { cache_control: { type: 'ephemeral', ttl: '1h' } };

/** A text block of exactly so many tokens. */
const tokens = (count: number, fill = 'a', more: Json = {}) => ({
  type: 'text',
  text: fill.repeat(count * 4),
  ...more,
});
const user = (...content: Json[]) => ({ role: 'user', content });
const model = (...content: Json[]) => ({ role: 'assistant', content });

let judge: Judge;
beforeEach(() => {
  judge = createJudge();
});

function bill(messages: readonly Json[], atMs = 0, more: Json = {}, headers: Record<string, string> = {}) {
  const body = { model: 'claude-opus-5', max_tokens: 1, messages, ...more };
  const verdict = judge.judge({ body, headers, atMs });
  if (verdict.refusal) throw new Error(verdict.refusal.message);
  return { ...verdict.usage, cost: verdict.cost };
}

describe('the prompt cache', () => {
  it('writes at a breakpoint and reads the exact prefix', () => {
    const system = [tokens(600, 's', BREAK)];
    const first = bill([user(tokens(1000, 'q', BREAK), tokens(7))], 0, { system });
    expect(first).toMatchObject({ input: 7, cacheRead: 0, cacheWrite5m: 1600, cacheWrite1h: 0, cost: 7 + 1.25 * 1600 });
    const next = [user(tokens(1000, 'q'), tokens(7)), model(tokens(50, 'r')), user(tokens(20, 'n', BREAK))];
    // The only entries are behind the system prompt and behind the first block.
    expect(bill(next, MINUTE, { system })).toMatchObject({
      input: 0,
      cacheRead: 1600,
      cacheWrite5m: 77,
      cost: 160 + 77 * 1.25,
    });
    expect(bill(next, 2 * MINUTE, { system })).toMatchObject({ input: 0, cacheRead: 1677, cacheWrite5m: 0 });
  });

  it('misses everything behind a change', () => {
    const system = [tokens(600, 's', BREAK)];
    bill([user(tokens(1000, 'q', BREAK))], 0, { system });
    expect(bill([user(tokens(1000, 'x', BREAK))], 0, { system })).toMatchObject({ cacheRead: 600, cacheWrite5m: 1000 });
    expect(bill([user(tokens(1000, 'q', BREAK))], 0, { system: [tokens(600, 'z', BREAK)] })).toMatchObject({
      cacheRead: 0,
      cacheWrite5m: 1600,
    });
    expect(
      bill([user(tokens(1000, 'q', BREAK))], 0, { system, tools: [{ name: 'T', input_schema: {} }] }).cacheRead,
    ).toBe(0);
  });

  it('does not see cache_control, block form, key order and the attribution block', () => {
    const attribution = (n: number) => ({ type: 'text', text: `x-anthropic-billing-header: cch=${n};` });
    const system = (n: number) => [attribution(n), tokens(600, 's')];
    bill([user(tokens(400, 'q', BREAK))], 0, { system: system(1) });
    const moved = [{ content: 'q'.repeat(1600), role: 'user' }, model(tokens(9, 'r')), user(tokens(1, 'n', BREAK))];
    expect(bill(moved, 0, { system: system(2) }).cacheRead).toBe(1000);
  });

  it('looks back 20 blocks and no further', () => {
    const blocks = (count: number) =>
      Array.from({ length: count }, (_, at) => tokens(10, String.fromCharCode(97 + at)));
    const reach = (between: number) => {
      judge = createJudge();
      bill([user(tokens(600, 'q', BREAK))]);
      return bill([user(tokens(600, 'q'), ...blocks(between - 1), tokens(5, 'z', BREAK))]).cacheRead;
    };
    expect(reach(19)).toBe(600);
    expect(reach(20)).toBe(0);
  });

  it('counts the time from the start of the request, and a read restarts it', () => {
    const messages = [user(tokens(600, 'q', BREAK))];
    bill(messages, 0);
    expect(bill(messages, 4 * MINUTE).cacheRead).toBe(600);
    expect(bill(messages, 8 * MINUTE).cacheRead).toBe(600);
    expect(bill(messages, 13 * MINUTE)).toMatchObject({ cacheRead: 0, cacheWrite5m: 600 });
  });

  it('keeps 1h entries for an hour and bills both kinds apart', () => {
    const system = [tokens(700, 's', HOUR)];
    const messages = [user(tokens(300, 'q', BREAK))];
    expect(bill(messages, 0, { system })).toMatchObject({ cacheWrite1h: 700, cacheWrite5m: 300, cost: 1400 + 375 });
    expect(bill(messages, 30 * MINUTE, { system })).toMatchObject({ cacheRead: 700, cacheWrite5m: 300 });
    expect(bill(messages, 91 * MINUTE, { system })).toMatchObject({ cacheRead: 0, cacheWrite1h: 700 });
  });

  it('leaves short prefixes uncached, by model', () => {
    const short = [user(tokens(511, 'q', BREAK))];
    expect(bill(short)).toMatchObject({ input: 511, cacheWrite5m: 0 });
    expect(bill([user(tokens(512, 'q', BREAK))]).cacheWrite5m).toBe(512);
    expect(bill([user(tokens(4095, 'q', BREAK))], 0, { model: 'claude-haiku-4-5' }).cacheWrite5m).toBe(0);
    expect(bill([user(tokens(4096, 'q', BREAK))], 0, { model: 'claude-haiku-4-5' }).cacheWrite5m).toBe(4096);
  });

  it('is one per model and account', () => {
    const messages = [user(tokens(5000, 'q', BREAK))];
    bill(messages, 0, {}, { 'x-api-key': 'one' });
    expect(bill(messages, 0, {}, { 'x-api-key': 'two' }).cacheRead).toBe(0);
    expect(bill(messages, 0, { model: 'claude-opus-4-8' }, { 'x-api-key': 'one' }).cacheRead).toBe(0);
    expect(bill(messages, 0, {}, { 'x-api-key': 'one' }).cacheRead).toBe(5000);
  });

  it('loses the messages, not the system prompt, to thinking, effort, tool choice and images', () => {
    const system = [tokens(600, 's', BREAK)];
    const messages = [user(tokens(600, 'q', BREAK))];
    bill(messages, 0, { system });
    for (const more of [
      { thinking: { type: 'adaptive' } },
      { output_config: { effort: 'low' } },
      { tool_choice: { type: 'auto' } },
    ]) {
      expect(bill(messages, 0, { system, ...more }).cacheRead).toBe(600);
    }
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'x' } };
    expect(bill([user(tokens(600, 'q'), image, tokens(1, 'n', BREAK))], 0, { system }).cacheRead).toBe(600);
    expect(bill(messages, 0, { system, max_tokens: 99, metadata: {} }).cacheRead).toBe(1200);
  });

  it('takes the automatic breakpoint as one on the last block', () => {
    bill([user(tokens(600, 'q'))], 0, BREAK);
    expect(bill([user(tokens(600, 'q')), model(tokens(5, 'r')), user(tokens(5, 'n'))], 0, BREAK)).toMatchObject({
      cacheRead: 600,
      cacheWrite5m: 10,
    });
  });

  it('neither bills nor keeps count_tokens and refused requests', () => {
    const body = { model: 'claude-opus-5', messages: [user(tokens(600, 'q', BREAK))] };
    const counted = judge.judge({ body, headers: {}, atMs: 0, path: 'count_tokens' });
    expect(counted).toMatchObject({ refusal: null, usage: { input: 600 }, cost: 0 });
    judge.judge({ body: { ...body, max_tokens: 1, nonsense: 1 }, headers: {}, atMs: 0 });
    expect(bill(body.messages).cacheRead).toBe(0);
  });

  it('prices reads by model', () => {
    const cost = (name: string) => {
      bill([user(tokens(8000, 'q', BREAK))], 0, { model: name });
      return bill([user(tokens(8000, 'q', BREAK))], 0, { model: name }).cost;
    };
    expect(cost('claude-opus-5')).toBe(800);
    expect(cost('claude-opus-5-5')).toBe(400);
    expect(cost('claude-fable-5-1')).toBe(200);
  });

  it('refuses what is longer than the window', () => {
    expect(() => bill([user(tokens(200_001))], 0, { model: 'claude-haiku-4-5' })).toThrow(
      'prompt is too long: 200001 tokens > 200000 maximum',
    );
  });
});

describe('trim economics (K = 40k kept, D = 100k dropped, W = 2, r = 0.05)', () => {
  const opus = { model: 'claude-opus-5-5' };
  const dropped = tokens(100_000, 'd');
  const kept = tokens(40_000, 'k', HOUR);

  /** Cost of `requests` identical requests after the history was written once. */
  function run(requests: number, trim: boolean, startMs: number): number {
    judge = createJudge();
    bill([user(tokens(600, 'h', HOUR), dropped, kept)], 0, opus);
    let cost = 0;
    for (let at = 0; at < requests; at += 1) {
      const blocks = trim ? [tokens(600, 'h', HOUR), kept] : [tokens(600, 'h', HOUR), dropped, kept];
      cost += bill([user(...blocks)], startMs + at, opus).cost;
    }
    return cost;
  }

  it('costs (W - r)·K once when warm and saves r·D a request: even after 16', () => {
    expect(run(1, true, MINUTE) - run(1, false, MINUTE)).toBeCloseTo(2 * 40_000 - 0.05 * 140_000);
    expect(((2 - 0.05) * 40_000) / (0.05 * 100_000)).toBeCloseTo(15.6);
    expect(run(15, true, MINUTE)).toBeGreaterThan(run(15, false, MINUTE));
    expect(run(17, true, MINUTE)).toBeLessThan(run(17, false, MINUTE));
  });

  it('is free when cold and saves W·D at once', () => {
    const cold = 61 * MINUTE;
    expect(run(1, false, cold) - run(1, true, cold)).toBeCloseTo(2 * 100_000);
  });
});
