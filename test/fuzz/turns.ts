import type { Round, Turn } from './fake-client.ts';
import type { Json } from './rewriter-rig.ts';

/** Few different texts, so that equal messages, prompts and results are common. */
const PROMPTS = [
  'yes, do it',
  'continue',
  'Add a retry to the client',
  'Why does 日本語 fail? 🤔',
  'run the tests again',
];
const ANSWERS = ['Done.', 'Done.', 'The port is 8471 and the test passes.', 'Ich habe `src/a.ts` geändert.', 'OK '];
const RESULTS = ['', 'ok', 'line 1\nline 2\n', '{"n": 12345678901234567890, "s": "\\ud83d"}', 'lone \ud83d surrogate'];
const NOTES = [
  "The task tools haven't been used recently.",
  'The date has changed.',
  'The following deferred tools are now available via ToolSearch:\nmcp__docs__search',
];
const THOUGHTS = [['I should look first.'], ['Hm.', ''], [], ['']];
const INPUTS: readonly Json[] = [{ command: 'ls' }, { file_path: '/a b.ts', limit: 1e21 }, {}];
const TOOLS = ['Bash', 'Read', 'mcp__docs__search'];
const MEANWHILE = ['interrupted', 'interrupted', 'error', 'queued', 'noted'] as const;
const PIXEL = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
const PAGE = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' }, title: 'p' };
const FILLER = 'The quick brown fox reads src/index.ts. ';

export type Random = (below: number) => number;

/** The same numbers for the same seed. Source: mulberry32, public domain. */
export function randomFrom(seed: number): Random {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export function randomTurn(random: Random, rounds: number): Turn {
  const before = [...(random(12) === 0 ? [PIXEL] : []), ...(random(15) === 0 ? [PAGE] : [])];
  return {
    prompt: padded(random, PROMPTS),
    rounds: Array.from({ length: rounds }, () => randomRound(random)),
    thinking: pick(random, THOUGHTS),
    answer: padded(random, ANSWERS),
    ...(before.length > 0 && { before }),
    ...(random(12) === 0 && { cites: true }),
    ...(random(4) === 0 && { note: pick(random, NOTES) }),
  };
}

function randomRound(random: Random): Round {
  const calls = Array.from({ length: 1 + (random(4) === 0 ? random(3) : 0) }, () => ({
    name: pick(random, TOOLS),
    input: pick(random, INPUTS),
    result: random(12) === 0 ? [PIXEL] : padded(random, RESULTS),
  }));
  return {
    calls,
    thinking: pick(random, THOUGHTS),
    ...(random(3) === 0 && { text: 'Let me look.' }),
    ...(random(6) === 0 && { note: pick(random, NOTES) }),
    ...(random(8) === 0 && { typed: { how: pick(random, MEANWHILE), text: padded(random, PROMPTS) } }),
  };
}

function padded(random: Random, texts: readonly string[]): string {
  const text = pick(random, texts);
  return random(3) === 0 ? `${text} ${FILLER.repeat(1 + random(12))}`.trim() : text;
}

function pick<T>(random: Random, items: readonly T[]): T {
  return items[random(items.length)] as T;
}
