import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { cutRule } from '../../engine/cut-config.ts';
import type { Memory } from '../../memory/index.ts';
import { openCostLedger } from '../../proxy/ledger/index.ts';
import { createMemoryRecords } from '../../test/helpers/memory-records.ts';
import { createMemoryPlanStore, openRewriter } from '../../test/helpers/open-rewriter.ts';
import { makeRequest } from '../../test/helpers/transcripts.ts';
import { type Block, type Message, PROJECT_DIR, type RealTurn } from './corpus.ts';
import { MODEL, textsIn } from './product.ts';

const NEVER_ENDS = { tolerance: 0, credit: Number.POSITIVE_INFINITY, longestHorizon: 60 };
const PATIENT_MS = 60_000;

/** The texts that came in and went on. */
export interface Replayed {
  readonly received: string;
  readonly body: string;
  /** Those of the body, block by block. */
  readonly texts: readonly string[];
}

export interface Replay {
  /** Sends the prompt of `turns[at]` after the whole of the turns before it. */
  send(turns: readonly RealTurn[], at: number): Promise<Replayed>;
}

const DAY_MS = 86_400_000;

/**
 * The product's rewriter in front of this memory; its clock is that of the session.
 *
 * @param joins  what was before the first request was said a day ago, past the product
 */
export async function openReplay(memory: Memory, mode: Config['trim']['mode'], joins = false): Promise<Replay> {
  const config = Config.parse({ llm: 'local', trim: { mode } });
  let nowMs = 0;
  let drawn = 0;
  const clock = { now: () => nowMs };
  const rewriter = await openRewriter({
    memory: { ...memory.capture, ...memory.recall },
    plans: createMemoryPlanStore(),
    ...(joins ? { transcripts: { lastAnswerMs: async () => nowMs - DAY_MS, prompts: async () => [] } } : {}),
    config: { ...config.inject, memoryDeadlineMs: PATIENT_MS, cut: cutRule(config.trim) },
    ledger: await openCostLedger({ store: createMemoryRecords(), rule: NEVER_ENDS, clock, log: silentLog }),
    clock,
    randomHex: (bytes) => (drawn++).toString(16).padStart(bytes * 2, '0'),
  });
  return {
    async send(turns, at) {
      const turn = turns[at] as RealTurn;
      nowMs = turn.startMs;
      const plan = {
        model: MODEL,
        sessionId: `kept-${turn.sessionId}`,
        cwd: PROJECT_DIR,
        ttl: '1h',
        turns: [],
      } as const;
      const content = [{ type: 'text', text: turn.prompts.join('\n') }];
      const prompt = { role: 'user', content, atMs: turn.startMs } as const;
      const history = [...turns.slice(0, at).flatMap(({ messages }) => messages), prompt];
      const sent = makeRequest(plan, sendable(history), { index: at, turn: at, round: 0, answer: [] });
      const { headers, bytes: body } = sent;
      const message = { requestId: `${drawn}`, path: 'messages', headers, body, receivedAtMs: nowMs } as const;
      const outcome = await rewriter.rewrite(message, new AbortController().signal);
      // The answer comes to memory with the history of the next request, tool rounds included.
      outcome.onResponse({ status: 200, end: 'aborted_by_client', message: null, errorText: '' });
      // A person thinks for minutes; memory is done by then.
      await new Promise(setImmediate);
      await memory.maintenance.settled();
      const texts = textsIn(outcome.body);
      return { received: textsIn(body).join('\n'), body: texts.join('\n'), texts };
    },
  };
}

/** Without blank texts, and without tool calls and results that lack the other. */
export function sendable(messages: readonly Message[]): readonly { role: string; content: readonly Block[] }[] {
  const ids = (type: string, key: string): Set<unknown> =>
    new Set(
      messages.flatMap(({ content }) => content.flatMap((block) => (block['type'] === type ? [block[key]] : []))),
    );
  const [calls, results] = [ids('tool_use', 'id'), ids('tool_result', 'tool_use_id')];
  const isSendable = (block: Block): boolean => {
    if (block['type'] === 'tool_use') return results.has(block['id']);
    if (block['type'] === 'tool_result') return calls.has(block['tool_use_id']);
    return block['type'] !== 'text' || String(block['text']).trim() !== '';
  };
  return messages
    .map(({ role, content }) => ({ role, content: content.filter(isSendable) }))
    .filter(({ content }) => content.length > 0);
}
