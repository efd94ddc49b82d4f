import { z } from 'zod';
import { parseJson } from '../../common/text.ts';
import type { JournalTurn } from './turn.ts';

/** A turn as it is stored: its id is under `end`, the name it had when the format was fixed. */
const Record = z.looseObject({
  key: z.string(),
  end: z.string(),
  sessionId: z.string(),
  projectDir: z.string().nullable(),
  model: z.string(),
  atMs: z.number(),
  messages: z.array(
    z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content: z.string(), sha256: z.string() }),
  ),
  seq: z.int().nonnegative(),
  project: z.string(),
  redacted: z.boolean(),
  echoes: z
    .union([z.literal(true), z.array(z.int())])
    .optional()
    .catch(true),
  parts: z
    .array(z.looseObject({ end: z.string(), messages: z.number() }))
    .optional()
    .catch(undefined),
  files: z
    .array(z.object({ path: z.string(), sha256: z.string(), commit: z.string() }))
    .optional()
    .catch(undefined),
});

export function renderTurn({ key, turnId, parts, ...rest }: JournalTurn): string {
  const stored = parts === undefined ? {} : { parts: parts.map(({ turnId: end, messages }) => ({ end, messages })) };
  return JSON.stringify({ key, end: turnId, ...rest, ...stored });
}

/** Null for text that is not a stored turn. */
export function parseTurn(json: string): JournalTurn | null {
  const result = Record.safeParse(parseJson(json));
  if (!result.success) return null;
  const { key, end, parts, ...rest } = result.data;
  const named = parts === undefined ? {} : { parts: parts.map(({ end: turnId, messages }) => ({ turnId, messages })) };
  return { key, turnId: end, ...rest, ...named } as JournalTurn;
}
