import { isRecord } from '../../common/text.ts';
import { type Block, stringOf } from './content-blocks.ts';
import { blocksIn, type PastMessage, type PastTurn } from './imported-turn.ts';

/** Why lines of a transcript hold nothing to remember. */
export type Skipped = Readonly<Record<'broken' | 'other' | 'side' | 'summary', number>>;

/**
 * Reads a transcript as Claude Code writes it, line by line: one JSON document for each content block of an answer, for
 * each prompt and for each result, joined by `parentUuid`. A rewound conversation has two turns after the same one;
 * both were said.
 */
export interface TranscriptReader {
  line(text: string): void;
  turns(): PastTurn[];
  /** `broken`: no JSON; `side`: of a subagent; `summary`: written in place of turns; `other`: of any other kind. */
  skipped(): Skipped;
}

interface Entry {
  readonly role: 'user' | 'assistant';
  /** Of the API's message, whose blocks stand on several lines. */
  readonly id: string;
  blocks: Block[];
}

interface OpenTurn {
  readonly sessionId: string;
  readonly projectDir: string | null;
  readonly after: number;
  readonly startMs: number;
  readonly entries: Entry[];
  model: string;
  atMs: number;
  answered: boolean;
}

type Line = Readonly<Record<string, unknown>>;

const THINKING = new Set(['thinking', 'redacted_thinking']);

/**
 * @param sessionId  of the whole: lines that a fork took over may name another one
 * @param writtenMs  when the file was written: the time of lines that have none, nor any before them
 */
export function createTranscriptReader(sessionId: string, writtenMs: number): TranscriptReader {
  const turns: OpenTurn[] = [];
  /** Turn that each line stands in or after. */
  const places = new Map<string, number>();
  const skipped = { broken: 0, other: 0, side: 0, summary: 0 };

  function place(line: Line, at: number): void {
    const uuid = stringOf(line['uuid']);
    if (uuid !== '') places.set(uuid, at);
  }

  function parentOf(line: Line): number {
    const parent = stringOf(line['parentUuid']) || stringOf(line['logicalParentUuid']);
    return places.get(parent) ?? turns.length - 1;
  }

  function open(line: Line, after: number): number {
    const atMs = timeOf(line) ?? turns.at(-1)?.atMs ?? writtenMs;
    const cwd = stringOf(line['cwd']);
    turns.push({
      sessionId,
      projectDir: cwd === '' ? null : cwd,
      after,
      startMs: atMs,
      entries: [],
      model: '',
      atMs,
      answered: false,
    });
    return turns.length - 1;
  }

  function enter(line: Line, role: Entry['role'], message: Line): void {
    const blocks = blocksIn(message['content']).filter((block) => !THINKING.has(stringOf(block['type'])));
    const parent = parentOf(line);
    const isPrompt = role === 'user' && !blocks.some((block) => stringOf(block['type']) === 'tool_result');
    // Prompts in a row are one turn.
    const goesOn = !isPrompt || turns[parent]?.answered === false;
    const at = goesOn && parent >= 0 ? parent : open(line, parent);
    place(line, at);
    const turn = turns[at] as OpenTurn;
    turn.atMs = Math.max(turn.atMs, timeOf(line) ?? turn.atMs);
    if (role === 'assistant') {
      turn.answered = true;
      turn.model ||= stringOf(message['model']);
    }
    if (blocks.length === 0) return;
    const id = stringOf(message['id']);
    const same = id === '' ? undefined : turn.entries.find((entry) => entry.id === id);
    // Results of calls made at once are sent as one message.
    const results = role === 'user' && !isPrompt && turn.entries.at(-1)?.role === 'user' ? turn.entries.at(-1) : same;
    if (results === undefined) turn.entries.push({ role, id, blocks: [...blocks] });
    else results.blocks.push(...blocks);
  }

  return {
    line(text) {
      if (text.trim() === '') return;
      const line = parsed(text);
      if (line === null) {
        skipped.broken += 1;
        return;
      }
      // Where it compacts, Claude Code may write what came last once more.
      if (places.has(stringOf(line['uuid']))) return;
      const reason = reasonToSkip(line);
      if (reason === null) return enter(line, line['type'] as Entry['role'], line['message'] as Line);
      skipped[reason] += 1;
      place(line, parentOf(line));
    },
    turns: () => turns.map(({ entries, answered: _, ...turn }) => ({ ...turn, messages: entries.map(asMessage) })),
    skipped: () => ({ ...skipped }),
  };
}

function reasonToSkip(line: Line): keyof Skipped | null {
  const { type, message } = line;
  if (line['isSidechain'] === true) return 'side';
  if (type === 'summary' || line['isCompactSummary'] === true) return 'summary';
  if ((type !== 'user' && type !== 'assistant') || typeof message !== 'object' || message === null) return 'other';
  const { model, role } = message as Line;
  // Written by the client itself: neither the user nor the model said it.
  if (line['isMeta'] === true || line['isApiErrorMessage'] === true || model === '<synthetic>') return 'other';
  return role === type ? null : 'other';
}

function asMessage({ role, blocks }: Entry): PastMessage {
  return { role, content: blocks };
}

function timeOf(line: Line): number | null {
  const at = Date.parse(stringOf(line['timestamp']));
  return Number.isNaN(at) ? null : at;
}

function parsed(text: string): Line | null {
  try {
    const value = JSON.parse(text) as unknown;
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
