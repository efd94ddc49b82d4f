import { z } from 'zod';
import type { StoredBrief } from './claim.ts';
import { copied } from './detach-strings.ts';
import { isOneLine, parseFrontMatter, readValue, renderFrontMatter, writeValue } from './front-matter.ts';

type StoredClaim = StoredBrief['active'][number];

const TITLES = { active: '## Active Work Context', hints: '## Hints' } as const;
const Head = z.looseObject({ session_id: z.string().min(1), project: z.string(), updated_at: z.iso.datetime() });
const Basis = z.object({ origin: z.enum(['user', 'assistant', 'tool', 'external']), sources: z.array(z.string()) });
/** A line without its basis was typed by the owner of the file. */
const TYPED: z.infer<typeof Basis> = { origin: 'user', sources: [] };

export function renderBriefFile(brief: StoredBrief): string {
  const { session_id, project, updated_at } = brief;
  const list = (claims: readonly StoredClaim[]): string => claims.map(renderClaim).join('');
  return [
    renderFrontMatter({ session_id, project, updated_at }),
    `${TITLES.active}\n`,
    list(brief.active),
    `${TITLES.hints}\n`,
    list(brief.hints),
  ].join('\n');
}

/** @returns the brief, or what is wrong with it */
export function parseBriefFile(text: string): StoredBrief | string {
  const front = parseFrontMatter(text);
  if (front === null) return 'front matter: expected it between two lines of ---';
  const head = Head.safeParse(front.values);
  if (!head.success) {
    const [issue] = head.error.issues;
    return `${issue?.path.join('.')}: ${issue?.message}`;
  }
  const claims: Record<keyof typeof TITLES, StoredClaim[]> = { active: [], hints: [] };
  let into: StoredClaim[] | null = null;
  for (const line of front.rest.split('\n')) {
    const titled = (Object.keys(TITLES) as (keyof typeof TITLES)[]).find((key) => line.trimEnd() === TITLES[key]);
    if (titled !== undefined) into = claims[titled];
    else if (into !== null && line.startsWith('- ')) into.push({ text: String(readValue(line.slice(2))), ...TYPED });
    else if (into !== null && line.startsWith('  ')) takeBasis(into, line);
  }
  const { session_id, project, updated_at } = head.data;
  return copied({ session_id, project, updated_at, ...claims });
}

function renderClaim({ text, origin, sources }: StoredClaim): string {
  const shown = isOneLine(text) ? writeValue(text) : JSON.stringify(text);
  return `- ${shown}\n  ${JSON.stringify({ origin, sources })}\n`;
}

function takeBasis(claims: StoredClaim[], line: string): void {
  const last = claims.pop();
  if (last === undefined) return;
  const basis = Basis.safeParse(readValue(line));
  // What does not read as a basis is the line's own continuation.
  claims.push(basis.success ? { ...last, ...basis.data } : { ...last, text: `${last.text} ${line.trim()}` });
}
