import { createHash } from 'node:crypto';
import type { CapturedMessage, CapturedTurn } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { isContinuation } from '../text/compaction-summary.ts';
import { type Block, stringOf } from './content-blocks.ts';

/** A turn as somebody else wrote it down. */
export interface PastTurn {
  readonly sessionId: string;
  readonly projectDir: string | null;
  readonly model: string;
  /** When it began. */
  readonly startMs: number;
  /** When the last word of it was said. */
  readonly atMs: number;
  readonly messages: readonly PastMessage[];
  /** The turn that it follows, by its place in the same list; -1 for none. */
  readonly after: number;
}

export interface PastMessage {
  readonly role: 'user' | 'assistant';
  /** A text, or content blocks. */
  readonly content: unknown;
}

/**
 * Past turns as captured ones, each named by what it says and what was said before it, in whatever session: a fork
 * that repeats its beginning gives the same names.
 */
export function capturedPast(turns: readonly PastTurn[], imported: 'claude' | 'file', project: string): CapturedTurn[] {
  const turnIds: string[] = [];
  return turns.map((turn) => {
    const messages = turn.messages.map(({ role, content }): CapturedMessage => {
      const text = JSON.stringify(content);
      return { role, content: text, sha256: digest(text) };
    });
    const before = turnIds[turn.after] ?? '';
    const key = digest(`past ${imported}\n${project}\n${before}\n${messages[0]?.sha256 ?? ''}`);
    const turnId = digest([key, ...messages.map(({ role, sha256 }) => `${role} ${sha256}`)].join('\n'));
    turnIds.push(turnId);
    const { sessionId, projectDir, model, atMs } = turn;
    return { key, turnId, before, sessionId, projectDir, model, atMs, messages, imported };
  });
}

const MARK = 'import:';

/** Stands in `source_links` of nodes over past turns. */
export function importLink(imported: 'claude' | 'file'): string {
  return `${MARK}${imported}`;
}

export function isImportLink(link: string): boolean {
  return link.startsWith(MARK);
}

/** Made of past turns: a model writes it anew only where the user asks for that. */
export function isImported({ source_links }: Pick<MemoryNode, 'source_links'>): boolean {
  return source_links.some(isImportLink);
}

/** Whether the last word was the assistant's, with no call left open. */
export function isComplete({ messages }: PastTurn): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  return !blocksIn(last.content).some((block) => stringOf(block['type']) === 'tool_use');
}

/** What a turn says, whatever it is wrapped in: the same for the turn as it was sent and as it was written down. */
export function saidDigest(sessionId: string, text: TurnText): string {
  const own = text.parts.flatMap((part) => {
    if (part.kind === 'tool_result' || isContinuation(part.text)) return [];
    return [`${part.kind} ${part.kind === 'tool_use' ? part.tool : part.text.trim()}`];
  });
  return digest(['said', sessionId, text.user.trim(), ...own].join('\n'));
}

export function blocksIn(content: unknown): readonly Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content.filter((block) => typeof block === 'object' && block !== null) : [];
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
