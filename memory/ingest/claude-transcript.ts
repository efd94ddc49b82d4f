import { resolveDirectory } from '../../common/paths.ts';
import { findBlocks, isRecord, parseJson, toText } from '../../common/text.ts';
import { getSource, readTypedText } from '../../common/turn.ts';
import { type Block, findTexts } from './content-blocks.ts';
import type { ImportedTurn } from './imported-turn.ts';
import { createPromptQueue, isTyped, type QueuedPrompt } from './prompt-queue.ts';
import { addMessage, createSubagents, type Entry, getMessages, isSpoken } from './subagents.ts';

/** Counts of ignored lines: invalid JSON, another kind, a subagent's, a summary. */
export type Skipped = Readonly<Record<'broken' | 'other' | 'side' | 'summary', number>>;

interface OpenTurn extends Pick<ImportedTurn, 'sessionId' | 'projectDir' | 'after' | 'startMs'> {
  readonly lines: [first: string, last: string];
  readonly entries: Entry[];
  model: string;
  atMs: number;
  answered: boolean;
}

type Line = Readonly<Record<string, unknown>>;

const THINKING = new Set(['thinking', 'redacted_thinking']);

/**
 * Reads Claude Code's transcript: one JSON line per prompt, tool result and content block of an answer, joined by
 * `parentUuid`. A rewound conversation has two turns with the same parent; both are read.
 * @param sessionId  overrides the lines' session: a fork copies lines of another one
 * @param writtenMs  time for lines without a timestamp
 */
export function createTranscriptReader(sessionId: string, writtenMs: number) {
  const turns: OpenTurn[] = [];
  /** Line uuid to turn index. */
  const places = new Map<string, number>();
  const skipped = { broken: 0, other: 0, side: 0, summary: 0 };
  const queue = createPromptQueue();
  const subagents = createSubagents();

  function place(line: Line, at: number): void {
    const uuid = toText(line['uuid']);
    if (uuid !== '') places.set(uuid, at);
  }

  function getParent(line: Line): number {
    return places.get(toText(line['parentUuid']) || toText(line['logicalParentUuid'])) ?? turns.length - 1;
  }

  function open(line: Line, after: number): number {
    const atMs = getTime(line) ?? turns.at(-1)?.atMs ?? writtenMs;
    const own = { sessionId, projectDir: getDirectory(line), after, startMs: atMs, atMs };
    turns.push({ ...own, lines: [lineId(line), ''], entries: [], model: '', answered: false });
    return turns.length - 1;
  }

  function enter(line: Line, role: Entry['role'], message: Line): void {
    const blocks = findBlocks(message['content']).filter((block) => !THINKING.has(toText(block['type'])));
    // The user went back to the first prompt.
    const parent = line['parentUuid'] === null ? -1 : getParent(line);
    const isPrompt = role === 'user' && !blocks.some((block) => toText(block['type']) === 'tool_result');
    if (isPrompt) queue.prompt(readTypedText(findTexts(blocks)));
    else queue.message();
    // Consecutive prompts form one turn.
    const continues = !isPrompt || turns[parent]?.answered === false;
    const at = continues && parent >= 0 ? parent : open(line, parent);
    place(line, at);
    const turn = turns[at] as OpenTurn;
    turn.lines[1] = lineId(line);
    turn.atMs = Math.max(turn.atMs, getTime(line) ?? turn.atMs);
    if (role === 'assistant') {
      turn.answered = true;
      turn.model ||= toText(message['model']);
    }
    subagents.message(at, line, blocks);
    if (isPrompt && blocks.length > 0) turn.entries.push({ role, id: '', blocks: markUntyped(line, blocks) });
    else addMessage(turn.entries, role, toText(message['id']), blocks);
  }

  /** Lines that are no messages may hold a prompt, or a message of a subagent, all the same. */
  function readOther(line: Line): void {
    const at = { atMs: getTime(line) ?? turns.at(-1)?.atMs ?? writtenMs, turn: turns.length - 1 };
    const { type, attachment } = line;
    if (type === 'progress') subagents.progress(line);
    else if (type === 'queue-operation') queue.operation(line, at);
    else if (type === 'attachment' && isRecord(attachment) && attachment['type'] === 'queued_command')
      queue.attachment(attachment, { ...at, turn: getParent(line) });
    if (type === 'attachment' && isRecord(attachment)) addAttachment(turns[getParent(line)]?.entries, line, attachment);
  }

  return {
    /** @param agentId  subagent whose file the line is from */
    line(text: string, agentId = '') {
      if (text.trim() === '') return;
      const line = parseJson(text);
      if (!isRecord(line)) {
        skipped.broken += 1;
        return;
      }
      if (agentId !== '' || (line['isSidechain'] === true && isRecord(line['message'])))
        return subagents.line(line, agentId);
      // Claude Code may repeat the last lines after a compaction.
      if (places.has(toText(line['uuid']))) return;
      const reason = reasonToSkip(line);
      if (reason === null) return enter(line, line['type'] as Entry['role'], line['message'] as Line);
      skipped[reason] += 1;
      if (reason === 'other') readOther(line);
      place(line, getParent(line));
    },
    turns(): ImportedTurn[] {
      const agents = subagents.agentsByTurn();
      const own = turns.map((turn, at) => ({ ...turn, ...(agents.has(at) ? { agents: agents.get(at) ?? [] } : {}) }));
      return withQueued(own, queue.prompts());
    },
    /** What was typed in each turn, and when. */
    prompts: (): { readonly text: string; readonly atMs: number }[] =>
      turns.map(({ startMs: atMs, entries }) => ({ text: readTypedText(findTexts(entries[0]?.blocks ?? [])), atMs })),
    skipped: (): Skipped => ({ ...skipped, side: skipped.side + subagents.countUnknown() }),
  };
}

/** Each queued prompt is a turn of its own, behind the turn that ran, and no turn continues it. */
function withQueued(
  turns: readonly (OpenTurn & Pick<ImportedTurn, 'agents'>)[],
  queued: readonly QueuedPrompt[],
): ImportedTurn[] {
  const all: ImportedTurn[] = [];
  /** New places of the turns, from -1. */
  const places: number[] = [];
  const placed = (at: number): number => (at < 0 ? -1 : (places[at] as number));
  const putQueued = (after: number): void => {
    const running = turns[after] ?? turns[0];
    if (running === undefined) return;
    const { sessionId, projectDir, model } = running;
    for (const { blocks, atMs, id } of queued.filter((prompt) => prompt.after === after)) {
      const messages = [{ role: 'user', content: blocks } as const];
      const times = { startMs: atMs, atMs };
      all.push({ sessionId, projectDir, model, ...times, messages, after: placed(after), queued: id, lines: [id, id] });
    }
  };
  putQueued(-1);
  for (const [at, { entries, answered: _, ...turn }] of turns.entries()) {
    places.push(all.length);
    all.push({ ...turn, after: placed(turn.after), messages: getMessages(entries) });
    putQueued(at);
  }
  return all;
}

/** The image of a prompt, sent before it, and a task's report to the running turn; earlier versions do not say how. */
function addAttachment(entries: Entry[] = [], { renderedRole, rendered }: Line, attachment: Line): void {
  const { type, content } = attachment;
  const file = isRecord(content) && content['type'] === 'image' ? content['file'] : null;
  if (renderedRole === 'user' && isRecord(file)) {
    const source = { type: 'base64', data: file['base64'], media_type: file['type'] };
    entries.findLast(({ role }) => role === 'user')?.blocks.unshift({ type: 'image', source });
  } else if (type === 'queued_command' && !isTyped(attachment)) {
    const blocks = findBlocks(rendered).flatMap((note) => findBlocks(note['content']));
    addMessage(entries, 'user', '', blocks);
  }
}

function reasonToSkip(line: Line): keyof Skipped | null {
  if (line['isSidechain'] === true) return 'side';
  if (line['type'] === 'summary' || line['isCompactSummary'] === true) return 'summary';
  // A hidden line starts a turn if it is a scheduled prompt, or the text of a hook at the end of a turn.
  const isOpener = line['turnOrigin'] !== undefined || line['hookText'] === true;
  return isSpoken(isOpener ? { ...line, isMeta: false } : line) ? null : 'other';
}

/** Text that looks typed gets the form in which the client sends it. */
function markUntyped(line: Line, blocks: readonly Block[]): Block[] {
  if (isTyped(line)) return [...blocks];
  return blocks.map((block) => {
    const text = block['type'] === 'text' ? toText(block['text']) : '';
    return text === '' || getSource(text) !== null ? block : { ...block, text: `[SYSTEM NOTIFICATION]\n${text}` };
  });
}

/** The same in a copy of the line, also where the copy got a uuid of its own. */
function lineId({ uuid, forkedFrom }: Line): string {
  return (isRecord(forkedFrom) ? toText(forkedFrom['messageUuid']) : '') || toText(uuid);
}

function getDirectory({ cwd }: Line): string | null {
  const name = toText(cwd);
  if (name === '') return null;
  return name.startsWith('~') ? resolveDirectory(name) : name;
}

function getTime(line: Line): number | null {
  const at = Date.parse(toText(line['timestamp']));
  return Number.isNaN(at) ? null : at;
}
