/**
 * Questions as the second, third and fourth prompt of a session, where what recall adds competes with what the session
 * carries already. Each question is asked at each place, behind others of its kind. Sizes are those of the corpus by the
 * usage of its answers: a quarter of the first requests have less than 28,000 tokens, and half of the fourth prompts come
 * with 30,000 more.
 */
import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { cutRule } from '../../engine/cut-config.ts';
import type { Memory } from '../../memory/index.ts';
import { openCostLedger } from '../../proxy/ledger/index.ts';
import type { RunningRewriter } from '../../proxy/rewrite/index.ts';
import { createMemoryRecords } from '../../test/helpers/memory-records.ts';
import { createMemoryPlanStore, openRewriter } from '../../test/helpers/open-rewriter.ts';
import { makeRequest } from '../../test/helpers/transcripts.ts';
import { createJudge, type Json } from '../../test/mock-anthropic/index.ts';
import { PROJECT_DIR } from './corpus.ts';
import { getTexts, MODEL } from './product.ts';
import { type Asked, holdsAnswer } from './right.ts';

const HEAD_TOKENS = 28_000;
const ROUNDS = 4;
const ROUND_TOKENS = 2_500;
const PROMPTS = 4;
/** Between a prompt and the one before it, in the order of the questions. */
const STRIDE = 7;
const MINUTE_MS = 60_000;
/** Between sessions: longer than a prompt cache lives. */
const PAUSE_MS = 120 * MINUTE_MS;

const config = Config.parse({ llm: 'local' });
const PADDING = {
  name: 'Tools',
  description: 'word '.repeat((HEAD_TOKENS * 4) / 5),
  input_schema: { type: 'object', properties: {}, additionalProperties: false },
};
const RESULT = { type: 'tool_result', content: 'word '.repeat((ROUND_TOKENS * 4) / 5) };

/** Per place from the second on: prompts that got something, and those that got their answer. */
export type Later = readonly { readonly given: number; readonly answered: number }[];

/** @param name  names the sessions, which must be new to memory */
export async function askLater(memory: Memory, name: string, all: readonly Asked[]): Promise<Later> {
  const play = await openPlay(memory);
  const places = Array.from({ length: PROMPTS }, () => ({ given: 0, answered: 0 }));
  for (const start of all.keys()) {
    const asked = places.map((_, at) => all[(start + at * STRIDE) % all.length] as Asked);
    const recalled = await play(
      `later-${name}-${start}`,
      asked.map(({ prompt }) => prompt),
    );
    for (const [at, place] of places.entries()) {
      const text = recalled[at] ?? '';
      if (/^- \[/m.test(text)) place.given += 1;
      if (holdsAnswer(text, asked[at] as Asked)) place.answered += 1;
    }
  }
  return places.slice(1);
}

/** Plays sessions; the result is what each of their prompts got in its messages. */
async function openPlay(memory: Memory) {
  let [nowMs, drawn] = [Date.now(), 0];
  const clock = { now: () => nowMs };
  const store = createMemoryRecords<never>();
  const rewriter: RunningRewriter = await openRewriter({
    // Memory stays as it is for the other questions.
    memory: { ...memory.capture, ...memory.recall, captureTurns: () => {} },
    plans: createMemoryPlanStore(),
    config: { ...config.inject, memoryDeadlineMs: MINUTE_MS, cut: cutRule(config.trim) },
    ledger: await openCostLedger({ store, rule: config.ledger, clock, log: silentLog }),
    clock,
    randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
  });
  const judge = createJudge();
  return async (sessionId: string, prompts: readonly string[]): Promise<readonly string[]> => {
    const plan = { model: MODEL, sessionId, cwd: PROJECT_DIR, ttl: '1h' as const, turns: [] };
    const history: Json[] = [];
    const known = new Set<string>();
    const recalled: string[] = [];
    let index = 0;
    nowMs += PAUSE_MS;
    const send = async (isLast: boolean): Promise<readonly string[]> => {
      const { body: own, headers } = makeRequest(plan, history, { index, turn: 0, round: 0, answer: [] });
      const tools = [PADDING, ...(own['tools'] as readonly Json[])];
      const body = Buffer.from(JSON.stringify({ ...own, tools }));
      const requestId = `${sessionId}-${index++}`;
      nowMs += MINUTE_MS / 6;
      const message = { requestId, path: 'messages', headers, body, receivedAtMs: nowMs } as const;
      const outcome = await rewriter.rewrite(message, new AbortController().signal);
      const verdict = judge.judge({ body: outcome.body, headers, atMs: nowMs });
      if (verdict.refusal !== null) throw new Error(verdict.refusal.message);
      const call = { type: 'tool_use' as const, id: requestId, name: 'Bash', input: { command: 'make' } };
      const content = verdict.seal([isLast ? { type: 'text', text: 'It is done.' } : call]);
      history.push({ role: 'assistant', content });
      const stopReason = isLast ? 'end_turn' : 'tool_use';
      const answer = { model: MODEL, content, stopReason, usage: { ...verdict.usage, output: 0 } };
      outcome.onResponse({ status: 200, end: 'complete', message: answer, errorText: '' });
      if (!isLast) history.push({ role: 'user', content: [{ ...RESULT, tool_use_id: requestId }] });
      const lines = (bytes: Buffer): string[] => getTexts(bytes).messages.join('\n').split('\n');
      const before = new Set(lines(body));
      return lines(outcome.body).filter((line) => !before.has(line));
    };
    for (const prompt of prompts) {
      history.push({ role: 'user', content: [{ type: 'text', text: prompt }] });
      nowMs += MINUTE_MS;
      const fresh = (await send(false)).filter((line) => !known.has(line));
      for (const line of fresh) known.add(line);
      recalled.push(fresh.join('\n'));
      for (let round = 1; round <= ROUNDS; round += 1) await send(round === ROUNDS);
    }
    return recalled;
  };
}
