import { z } from 'zod';
import { CometError } from '../../common/errors.ts';
import type { ImportedTurn } from './imported-turn.ts';

/** One message per line. */
const TurnLine = z.looseObject({
  session_id: z.string().min(1).max(200),
  turn_id: z.union([z.string().min(1), z.number()]),
  role: z.enum(['user', 'assistant']),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
  at: z.iso.datetime({ offset: true }),
});

export function isTurnLines(text: string): boolean {
  const [first = ''] = text.replace(/^\uFEFF/, '').split('\n', 1);
  return first.startsWith('{') && ['"session_id"', '"turn_id"', '"role"'].every((key) => first.includes(key));
}

/** Turns by session, in order of their first message. @throws CometError `usage` with line number and reason */
export function parseTurnLines(text: string, projectDir: string): ReadonlyMap<string, readonly ImportedTurn[]> {
  const sessions = new Map<string, Map<string, ImportedTurn>>();
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  for (const [at, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const { session_id, turn_id, role, content, at: time } = parseLine(line, at + 1);
    const turns = sessions.get(session_id) ?? new Map<string, ImportedTurn>();
    sessions.set(session_id, turns);
    const atMs = Date.parse(time);
    const turn = turns.get(String(turn_id));
    turns.set(String(turn_id), {
      sessionId: session_id,
      projectDir,
      model: '',
      startMs: turn?.startMs ?? atMs,
      atMs: Math.max(turn?.atMs ?? atMs, atMs),
      after: turn?.after ?? turns.size - 1,
      messages: [...(turn?.messages ?? []), { role, content }],
    });
  }
  return new Map([...sessions].map(([id, turns]) => [id, [...turns.values()]]));
}

function parseLine(text: string, number: number): z.infer<typeof TurnLine> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CometError('usage', `line ${number}: invalid JSON; nothing was imported`, { cause: error });
  }
  const read = TurnLine.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const what = `${issue?.path.join('.') || 'line'}: ${issue?.message ?? 'does not validate'}`;
  throw new CometError('usage', `line ${number}: ${what}; nothing was imported`);
}
