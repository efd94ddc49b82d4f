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

/** A call and the error that it ends with. */
export function failedRound(name: string, input: unknown, result: unknown): CapturedMessage[] {
  const [call, answer] = toolRound(name, input, result) as [CapturedMessage, CapturedMessage];
  const blocks = JSON.parse(answer.content) as object[];
  return [
    call,
    message(
      'user',
      blocks.map((block) => ({ ...block, is_error: true })),
    ),
  ];
}

/** What Claude Code 2.1 says in place of the result of a call that the user refuses with a comment. */
export const refusal = (comment: string): string =>
  `The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n${comment}`;
