import fc from 'fast-check';
import type { PastConversation, PastMessage, PastRequest } from '../../proxy/transcript/index.ts';

interface PastTurn {
  readonly promptTokens: number;
  /** Tokens of the result of each round. */
  readonly rounds: readonly number[];
  /** Before the prompt. */
  readonly pauseMs: number;
}

const STEP_MS = 20_000;
const ANSWER_MS = 8_000;

/** A session of these turns; each round is a call and its result. */
export function pastConversation(turns: readonly PastTurn[], over: Partial<PastRequest> = {}): PastConversation {
  const requests: PastRequest[] = [];
  let messages: PastMessage[] = [];
  let atMs = Date.UTC(2026, 0, 5);
  const ask = (answer: PastMessage): void => {
    const answerId = `m${requests.length}`;
    const known = { kind: 'main', model: 'claude-opus-4-8', promptTokens: 0, ttl: '5m' } as const;
    requests.push({ ...known, answerId, atMs, answeredAtMs: atMs + ANSWER_MS, messages, answer, ...over });
    messages = [...messages, answer];
    atMs += STEP_MS;
  };
  for (const [turn, { promptTokens, rounds, pauseMs }] of turns.entries()) {
    atMs += pauseMs;
    messages = [...messages, { role: 'user', content: [text(`prompt ${turn}`, promptTokens)] }];
    for (const [round, tokens] of rounds.entries()) {
      const id = `toolu_${turn}_${round}`;
      ask({ role: 'assistant', content: [{ type: 'tool_use', id, name: 'Read', input: {} }] });
      const content = [{ type: 'tool_result', tool_use_id: id, content: text(id, tokens).text }];
      messages = [...messages, { role: 'user', content }];
    }
    ask({ role: 'assistant', content: [text(`answer ${turn}`, 50)] });
  }
  return { sessionId: 's1', agentId: '', projectDir: '/home/ada', requests, rewinds: 0, compactions: 0 };
}

export function pastConversations(): fc.Arbitrary<PastConversation> {
  const turn = fc.record({
    promptTokens: fc.integer({ min: 5, max: 500 }),
    rounds: fc.array(fc.integer({ min: 10, max: 8_000 }), { maxLength: 8 }),
    pauseMs: fc.constantFrom(10_000, 60_000, 400_000, 7_200_000),
  });
  return fc.array(turn, { minLength: 1, maxLength: 6 }).map((turns) => pastConversation(turns));
}

function text(name: string, tokens: number) {
  return { type: 'text', text: name.padEnd(4 * tokens, ' word') };
}
