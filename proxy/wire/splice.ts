import { type ConversationView, parseSlice } from './conversation.ts';
import { type Slice, scanArray, scanObject } from './json-scanner.ts';
import { isThinking } from './message-hashes.ts';

/** Replaces bytes `[start, end)` of the received body by `bytes`. The edits of a request never overlap. */
export interface Edit extends Slice {
  readonly bytes: Buffer;
}

/** Replaces an assistant message that held nothing but stripped thinking. */
const NO_TEXT = '{"type":"text","text":"(no text)"}';

export interface MessageChange {
  /** Text of a new leading block. */
  readonly before: string | null;
  /** Texts of new trailing blocks. */
  readonly after: readonly string[];
  readonly stripThinking: boolean;
}

/** Null when nothing changes. Blocks that stay keep their bytes. */
export function changeMessage(
  body: Buffer,
  slice: Slice,
  change: MessageChange,
): { readonly bytes: Buffer; readonly thinkingStripped: number } | null {
  if (change.before === null && change.after.length === 0 && !change.stripThinking) return null;
  const content = scanObject(body, slice.start)?.values.get('content');
  if (content === undefined) return null;
  const blocks = sliceBlocks(body, content);
  const kept = change.stripThinking ? blocks.filter((block) => !isThinkingBytes(block)) : blocks;
  const thinkingStripped = blocks.length - kept.length;
  if (kept.length === 0) kept.push(Buffer.from(NO_TEXT));
  if (change.before !== null) kept.unshift(encodeTextBlock(change.before));
  kept.push(...change.after.map(encodeTextBlock));
  const joined = prefixWithCommas(kept).subarray(1);
  const pieces = [body.subarray(slice.start, content.start), Buffer.from('['), joined, Buffer.from(']')];
  return { bytes: Buffer.concat([...pieces, body.subarray(content.end, slice.end)]), thinkingStripped };
}

function isThinkingBytes(block: Buffer): boolean {
  return block.includes('thinking') && isThinking(JSON.parse(block.toString('utf8')));
}

function sliceBlocks(body: Buffer, content: Slice): Buffer[] {
  const blocks = scanArray(body, content.start);
  if (blocks !== null) return blocks.map((block) => body.subarray(block.start, block.end));
  const text = body.subarray(content.start, content.end);
  return [Buffer.concat([Buffer.from('{"type":"text","text":'), text, Buffer.from('}')])];
}

export function prefixWithCommas(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part) => [Buffer.from(','), part]));
}

function encodeTextBlock(text: string): Buffer {
  return Buffer.from(JSON.stringify({ type: 'text', text }));
}

export function encodeSystemMessage(text: string): Buffer {
  return Buffer.from(JSON.stringify({ role: 'system', content: text }));
}

/** Appends a system block. `system[0]` and all of Claude Code's blocks keep their place and their bytes. */
export function appendSystemBlock(view: ConversationView, text: string): Edit[] {
  const block = encodeTextBlock(text);
  const last = view.scan.system?.at(-1);
  if (last !== undefined) return [{ start: last.end, end: last.end, bytes: prefixWithCommas([block]) }];
  const value = view.scan.fields.get('system');
  if (value === undefined || typeof parseSlice(view.body, value) !== 'string') return [];
  const received = view.body.subarray(value.start, value.end);
  const pieces = [Buffer.from('[{"type":"text","text":'), received, Buffer.from('},'), block, Buffer.from(']')];
  return [{ ...value, bytes: Buffer.concat(pieces) }];
}

/** Every byte outside the edits is the byte received. */
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
