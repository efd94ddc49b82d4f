import { findBlocks, sha256, toText } from '../../common/text.ts';
import { type CapturedMessage, type CapturedTurn, isContinuation, isInterruption } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';

/** A turn read from a transcript or a JSONL file. */
export interface ImportedTurn extends Pick<CapturedTurn, 'sessionId' | 'projectDir' | 'model'> {
  readonly startMs: number;
  /** Time of the last message. */
  readonly atMs: number;
  readonly messages: readonly ImportedMessage[];
  /** Index of the preceding turn in the same list, -1 for none. */
  readonly after: number;
  /** Set for a prompt that was typed while Claude was busy: tells equal prompts apart, the same in copies. */
  readonly queued?: string;
  /** Ids of its first and last line in the transcript, '' where they have none: copies of the transcript keep them. */
  readonly lines?: readonly [first: string, last: string];
  /** The subagents that it started, and those that they started. */
  readonly agents?: readonly ImportedAgent[];
}

/** What a subagent was told and did for a turn. */
export interface ImportedAgent extends Pick<ImportedTurn, 'model' | 'startMs' | 'atMs' | 'messages'> {
  /** Unique in its session. */
  readonly id: string;
}

export interface ImportedMessage {
  readonly role: 'user' | 'assistant';
  /** String or content blocks. */
  readonly content: unknown;
}

/** Ids hash a turn with its predecessors, so a fork's copied beginning gets the ids of the original. */
export function captureImported(
  turns: readonly ImportedTurn[],
  imported: 'claude' | 'file',
  project: string,
): CapturedTurn[] {
  const turnIds: string[] = [];
  const isMark = ({ messages: [first] }: ImportedTurn): boolean =>
    isInterruption(toText(findBlocks(first?.content)[0]?.['text']));
  const stopped = new Set(turns.filter(isMark).map(({ after }) => after));
  return turns.map((turn, at) => {
    const messages = turn.messages.map(captureMessage);
    const before = turnIds[turn.after] ?? '';
    const queued = turn.queued === undefined ? '' : `\n${turn.queued}`;
    const key = sha256(`past ${imported}\n${project}\n${before}\n${messages[0]?.sha256 ?? ''}${queued}`);
    const turnId = sha256([key, ...messages.map(({ role, sha256 }) => `${role} ${sha256}`)].join('\n'));
    turnIds.push(turnId);
    const { sessionId, projectDir, model, atMs } = turn;
    const own = { key, turnId, before, sessionId, projectDir, model, atMs, messages, imported };
    return stopped.has(at) ? { ...own, unfinished: true } : own;
  });
}

function captureMessage({ role, content }: ImportedMessage): CapturedMessage {
  const text = JSON.stringify(content);
  return { role, content: text, sha256: sha256(text) };
}

/** A subagent as a part of the turn that started it, under the same id in each import. */
export function captureAgent(
  { id, model, atMs, messages }: ImportedAgent,
  { turnId, sessionId, projectDir }: Pick<CapturedTurn, 'turnId' | 'sessionId' | 'projectDir'>,
  index: number,
): CapturedTurn {
  const key = sha256(`past agent\n${turnId}\n${id}`);
  const part = { index, after: null, of: turnId };
  const own = { sessionId, projectDir, model, atMs, messages: messages.map(captureMessage) };
  return { key, turnId: sha256(`part\n${key}`), before: '', ...own, imported: 'claude', part };
}

/** Project of each turn; a folder without a repository is of the project above it in which the session was before. */
export function sessionProjects(
  turns: readonly Pick<ImportedTurn, 'projectDir'>[],
  getProject: (directory: string | null) => string,
): string[] {
  const ids: string[] = [];
  return turns.map(({ projectDir }) => {
    const key = projectDir === null ? (ids.at(-1) ?? '') : getProject(projectDir);
    const project = ids.find((one) => one !== '' && isBelow(key, one)) ?? key;
    ids.push(project);
    return project;
  });
}

/**
 * The turns with the directory in which their session entered the project: Claude Code stays there after a `cd` into
 * a folder below. @param projects  of each turn
 */
export function withSessionDirectory<T extends Pick<ImportedTurn, 'projectDir'>>(
  turns: readonly T[],
  projects: readonly string[],
): T[] {
  const entered = new Map<string, string>();
  return turns.map((turn, at) => {
    const { projectDir } = turn;
    if (projectDir === null) return turn;
    const above = [...entered].find(([dir, project]) => project === projects[at] && isBelow(projectDir, dir));
    if (above !== undefined) return { ...turn, projectDir: above[0] };
    entered.set(projectDir, projects[at] ?? '');
    return turn;
  });
}

const isBelow = (path: string, above: string): boolean =>
  path.startsWith(above) && /^[\\/]/.test(path.slice(above.length));

const IMPORT_PREFIX = 'import:';

/** Entry in `source_links` of nodes made from imported turns. */
export const importLink = (imported: 'claude' | 'file'): string => `${IMPORT_PREFIX}${imported}`;

export const isImportLink = (link: string): boolean => link.startsWith(IMPORT_PREFIX);

/** A model rewrites such a node only on the user's request. */
export function isImported({ source_links }: Pick<MemoryNode, 'source_links'>): boolean {
  return source_links.some(isImportLink);
}

/** Ends with an assistant message without an open tool call. */
export function isComplete({ messages }: Pick<ImportedTurn, 'messages'>): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  return !findBlocks(last.content).some((block) => toText(block['type']) === 'tool_use');
}

/** Hashes of a captured turn and of the prompts queued during it; a transcript has each as a turn. */
export function turnContentHashes(sessionId: string, text: TurnText): string[] {
  const queued = (text.queued ?? []).map((user) =>
    turnContentHash(sessionId, { ...text, user, parts: [], queued: [] }),
  );
  return [turnContentHash(sessionId, text), ...queued];
}

/** Equal for a turn captured from the wire and the same turn read from a transcript. */
export function turnContentHash(sessionId: string, text: TurnText): string {
  const own = text.parts.flatMap((part) => {
    if (part.kind === 'tool_result' || isContinuation(part.text)) return [];
    return [`${part.kind} ${part.kind === 'tool_use' ? part.tool : part.text.trim()}`];
  });
  // Claude Code's transcript has what was typed meanwhile as a line of its own.
  const queued = (text.queued ?? []).join('\n\n');
  const user = text.user.slice(0, text.user.length - queued.length);
  return sha256(['said', sessionId, user.trim(), ...own].join('\n'));
}
