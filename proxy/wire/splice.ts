import { type EpochPlan, type Injection, locatePlan } from '../rewrite/plan.ts';
import { type ConversationView, parseSlice } from './conversation.ts';
import { type Slice, scanArray, scanObject } from './json-scanner.ts';
import { isThinking } from './message-hashes.ts';
import { findHeadEnd } from './split-turns.ts';

/** Bytes `[start, end)` of the received body replaced by `bytes`; the edits of a request never overlap. */
export interface Edit extends Slice {
  readonly bytes: Buffer;
}

export interface Spliced {
  readonly body: Buffer;
  readonly edits: readonly Edit[];
  /** Outgoing messages in order: an index into the received ones, or the bytes of one that is new or changed. */
  readonly messages: readonly (number | Buffer)[];
  readonly thinkingStripped: number;
}

/** Stands where a turn was absorbed, so that the first prompt does not look unanswered and roles alternate. */
export const BRIDGE =
  '{"role":"assistant","content":[{"type":"text","text":"(The turns after this one are kept in memory; see the next message.)"}]}';

/** What is left of an assistant message that held nothing but thinking. */
const EMPTIED = '{"type":"text","text":"(no text)"}';

/**
 * Applies a plan to a request. Every byte outside the edits is the byte received.
 *
 * @returns null when the plan's prefix is not that of this request
 */
export function splice(view: ConversationView, plan: EpochPlan): Spliced | null {
  const at = locatePlan(plan, view.lineage);
  if (at === null) return null;
  const head = findHeadEnd(view);
  const edits: Edit[] = [];
  const messages: (number | Buffer)[] = [];
  let thinkingStripped = 0;
  let pending: Buffer[] = [];

  const promptOf = new Map(at.rounds.map((rounds) => [promptBefore(view, rounds.start), rounds.cut]));

  view.scan.messages.forEach((slice, index) => {
    if (plan.cut !== null && index >= head && index < at.cutEnd) return;
    if (at.rounds.some((rounds) => index >= rounds.start && index < rounds.end)) return;
    const ended = at.rounds.find((rounds) => index === rounds.end);
    if (ended !== undefined) {
      const dropped = view.scan.messages[ended.start] as Slice;
      edits.push({ start: dropped.start, end: slice.start, bytes: Buffer.alloc(0) });
    }
    const info = view.infos[index] as ConversationView['infos'][number];
    if (plan.cut !== null && index === at.cutEnd) {
      const dropped = view.scan.messages[head] as Slice;
      messages.push(Buffer.from(BRIDGE));
      edits.push({ start: dropped.start, end: slice.start, bytes: Buffer.from(`${BRIDGE},`) });
    }
    const here = plan.injections.filter((injection) => injection.anchor === view.lineage[index]);
    const asSystem = here.filter((injection) => speaksAsSystem(injection, view, index));
    const asBlock = here.filter((injection) => !asSystem.includes(injection));
    const roundsCut = promptOf.get(index);
    const change = changeMessage(view.body, slice, {
      before: plan.cut !== null && index === at.cutEnd ? plan.cut.preamble : null,
      after: [...asBlock.map((injection) => injection.text), ...(roundsCut === undefined ? [] : [roundsCut.preamble])],
      stripThinking: info.hasThinking && index < at.stripEnd,
    });
    thinkingStripped += change?.stripped ?? 0;
    if (change !== null) edits.push({ ...slice, bytes: change.bytes });
    messages.push(change === null ? index : change.bytes);
    pending.push(...asSystem.map((injection) => systemMessage(injection.text)));
    if (pending.length > 0 && view.infos[index + 1]?.role !== 'system') {
      messages.push(...pending);
      edits.push({ start: slice.end, end: slice.end, bytes: withLeadingCommas(pending) });
      pending = [];
    }
  });
  if (plan.systemBlock !== null) edits.push(...systemEdit(view, plan.systemBlock));
  return { body: applyEdits(view.body, edits), edits, messages, thinkingStripped };
}

/** The user message of an instruction, in front of the system messages bound to it. */
function promptBefore({ infos }: ConversationView, end: number): number {
  let index = end - 1;
  while (index > 0 && infos[index]?.role === 'system') index -= 1;
  return index;
}

/**
 * A `role: "system"` message may stand only before an assistant message or at the end, and only where the model
 * takes one; elsewhere the same text goes into the prompt.
 */
function speaksAsSystem(injection: Injection, view: ConversationView, index: number): boolean {
  if (injection.channel === 'block' || !view.takesSystemMessages) return false;
  let next = index + 1;
  while (view.infos[next]?.role === 'system') next += 1;
  const role = view.infos[next]?.role;
  return role === undefined || role === 'assistant';
}

interface MessageChange {
  readonly before: string | null;
  readonly after: readonly string[];
  readonly stripThinking: boolean;
}

function changeMessage(body: Buffer, slice: Slice, change: MessageChange): { bytes: Buffer; stripped: number } | null {
  if (change.before === null && change.after.length === 0 && !change.stripThinking) return null;
  const content = scanObject(body, slice.start)?.values.get('content');
  if (content === undefined) return null;
  const blocks = contentBlocks(body, content);
  const kept = change.stripThinking ? blocks.filter((block) => !isThinkingBytes(block)) : blocks;
  const stripped = blocks.length - kept.length;
  if (kept.length === 0) kept.push(Buffer.from(EMPTIED));
  if (change.before !== null) kept.unshift(textBlock(change.before));
  kept.push(...change.after.map(textBlock));
  const blocksJoined = withLeadingCommas(kept).subarray(1);
  const pieces = [body.subarray(slice.start, content.start), Buffer.from('['), blocksJoined, Buffer.from(']')];
  return { bytes: Buffer.concat([...pieces, body.subarray(content.end, slice.end)]), stripped };
}

function isThinkingBytes(block: Buffer): boolean {
  return block.includes('thinking') && isThinking(JSON.parse(block.toString('utf8')));
}

function contentBlocks(body: Buffer, content: Slice): Buffer[] {
  const blocks = scanArray(body, content.start);
  if (blocks !== null) return blocks.map((block) => body.subarray(block.start, block.end));
  const text = body.subarray(content.start, content.end);
  return [Buffer.concat([Buffer.from('{"type":"text","text":'), text, Buffer.from('}')])];
}

function withLeadingCommas(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part) => [Buffer.from(','), part]));
}

function textBlock(text: string): Buffer {
  return Buffer.from(JSON.stringify({ type: 'text', text }));
}

function systemMessage(text: string): Buffer {
  return Buffer.from(JSON.stringify({ role: 'system', content: text }));
}

/** Appends after the last block; `system[0]` and all of Claude Code's blocks stay where and as they are. */
function systemEdit(view: ConversationView, text: string): Edit[] {
  const block = textBlock(text);
  const last = view.scan.system?.at(-1);
  if (last !== undefined) return [{ start: last.end, end: last.end, bytes: Buffer.concat([Buffer.from(','), block]) }];
  const value = view.scan.fields.get('system');
  if (value === undefined || typeof parseSlice(view.body, value) !== 'string') return [];
  const theirs = Buffer.concat([
    Buffer.from('[{"type":"text","text":'),
    view.body.subarray(value.start, value.end),
    Buffer.from('},'),
  ]);
  return [{ ...value, bytes: Buffer.concat([theirs, block, Buffer.from(']')]) }];
}

/** Applying a request's edits to the body received gives the body sent. */
export function applyEdits(body: Buffer, edits: readonly Edit[]): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(body.subarray(from, edit.start), edit.bytes);
    from = edit.end;
  }
  pieces.push(body.subarray(from));
  return Buffer.concat(pieces);
}
