import type { ReceiptEdit } from '../ledger/receipts.ts';
import type { ConversationView } from '../wire/conversation.ts';
import { type Slice, scanArray, scanObject } from '../wire/json-scanner.ts';
import type { Edit } from '../wire/splice.ts';

/**
 * Equivalent edits without received bytes: receipts are stored, and what Claude Code sent must not be stored with them.
 * The edit of a whole message becomes insertions and deletions around the blocks that stay.
 */
export function minimizeEdits(view: Pick<ConversationView, 'body' | 'scan'>, edits: readonly Edit[]): ReceiptEdit[] {
  const slices = [...view.scan.messages, view.scan.fields.get('system')].filter((at) => at !== undefined);
  const byStart = new Map(slices.map((at) => [at.start, at]));
  return edits.flatMap((edit) => {
    const slice = byStart.get(edit.start);
    const isWhole = slice !== undefined && slice.end === edit.end && edit.end > edit.start;
    return isWhole
      ? editAroundPieces(view.body, edit, splitPieces(view.body, slice))
      : [toReceiptEdit(edit, edit.bytes)];
  });
}

/** The bytes before the first block, each block, and the bytes after the last; a value without blocks is one piece. */
function splitPieces(body: Buffer, at: Slice): Slice[] {
  const content = scanObject(body, at.start)?.values.get('content') ?? at;
  const blocks = scanArray(body, content.start) ?? [content];
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return [at];
  const opening = { start: at.start, end: content.start };
  return [opening, ...blocks, { start: last.end, end: at.end }].filter(({ start, end }) => end > start);
}

/** Finds the pieces in the replacement, in order, and keeps only what differs between them. */
function editAroundPieces(body: Buffer, edit: Edit, pieces: readonly Slice[]): ReceiptEdit[] {
  const edits: ReceiptEdit[] = [];
  let start = edit.start;
  let from = 0;
  for (const piece of pieces) {
    const bytes = body.subarray(piece.start, piece.end);
    const at = edit.bytes.indexOf(bytes, from);
    if (at < 0) continue;
    if (piece.start > start || at > from)
      edits.push(toReceiptEdit({ start, end: piece.start }, edit.bytes.subarray(from, at)));
    start = piece.end;
    from = at + bytes.length;
  }
  const rest = edit.bytes.subarray(from);
  if (edit.end > start || rest.length > 0) edits.push(toReceiptEdit({ start, end: edit.end }, rest));
  return edits;
}

function toReceiptEdit({ start, end }: Slice, bytes: Buffer): ReceiptEdit {
  return { start, end, text: bytes.toString('utf8') };
}
