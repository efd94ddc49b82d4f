import { createHash } from 'node:crypto';
import type { CapturedMessage, CapturedTurn, Role } from '../../common/turn.ts';

const hex = (text: string): string => createHash('sha256').update(text).digest('hex');

export function message(role: Role, content: unknown): CapturedMessage {
  const text = JSON.stringify(content);
  return { role, content: text, sha256: hex(text) };
}

export interface TurnOptions {
  readonly sessionId?: string;
  readonly projectDir?: string | null;
  readonly atMs?: number;
  readonly key?: string;
}

/** A turn named by what it says; `messages` are appended to the prompt as they stand. */
export function getTurn(
  prompt: unknown,
  messages: readonly CapturedMessage[],
  options: TurnOptions = {},
): CapturedTurn {
  const all = [message('user', prompt), ...messages];
  const { sessionId = 's1', projectDir = '/home/dev/shop', atMs = 1_800_000_000_000 } = options;
  const key = options.key ?? hex(`key ${JSON.stringify(prompt)}`);
  const turnId = hex(`${key} ${all.map((each) => each.content).join('\n')}`);
  return { key, turnId, sessionId, projectDir, model: 'claude-opus-4-8', atMs, messages: all };
}

export function talk(prompt: unknown, answer: string, options: TurnOptions = {}): CapturedTurn {
  return getTurn(prompt, [message('assistant', [{ type: 'text', text: answer }])], options);
}

/** One tool round: the call, then its result. */
export function toolRound(name: string, input: unknown, result: unknown, id = 'toolu_1'): CapturedMessage[] {
  return [
    message('assistant', [{ type: 'tool_use', id, name, input }]),
    message('user', [{ type: 'tool_result', tool_use_id: id, content: result }]),
  ];
}
