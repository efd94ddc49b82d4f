import type { ConversationView } from '../wire/conversation.ts';
import { type Slice, scanArray, scanObject } from '../wire/json-scanner.ts';
import type { Edit } from '../wire/splice.ts';

export interface ReceiptEdit extends Slice {
  readonly text: string;
}

/**
 * The same edits without the bytes received: a receipt is kept, and what Claude Code sent must not be kept with it.
 * A changed message becomes the insertions and deletions around the blocks of it that went out.
 */
export function minimizeEdits(view: Pick<ConversationView, 'body' | 'scan'>, edits: readonly Edit[]): ReceiptEdit[] {
  const places = [...view.scan.messages, view.scan.fields.get('system')].filter((at) => at !== undefined);
  const starts = new Map(places.map((at) => [at.start, at]));
  return edits.flatMap((edit) => {
    const place = starts.get(edit.start);
    const isWhole = place !== undefined && place.end === edit.end && edit.end > edit.start;
    return isWhole ? around(view.body, edit, piecesOf(view.body, place)) : [asText(edit, edit.bytes)];
  });
}

/** Up to the first block, each block, and what follows the last; a value that has none is a piece itself. */
function piecesOf(body: Buffer, at: Slice): Slice[] {
  const content = scanObject(body, at.start)?.values.get('content') ?? at;
  const blocks = scanArray(body, content.start) ?? [content];
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return [at];
  const opening = { start: at.start, end: content.start };
  return [opening, ...blocks, { start: last.end, end: at.end }].filter(({ start, end }) => end > start);
}

/** What stands between the pieces that are found again, in their order, in what took their place. */
function around(body: Buffer, edit: Edit, pieces: readonly Slice[]): ReceiptEdit[] {
  const edits: ReceiptEdit[] = [];
  let start = edit.start;
  let from = 0;
  for (const piece of pieces) {
    const bytes = body.subarray(piece.start, piece.end);
    const at = edit.bytes.indexOf(bytes, from);
    if (at < 0) continue;
    if (piece.start > start || at > from)
      edits.push(asText({ start, end: piece.start }, edit.bytes.subarray(from, at)));
    start = piece.end;
    from = at + bytes.length;
  }
  const rest = edit.bytes.subarray(from);
  if (edit.end > start || rest.length > 0) edits.push(asText({ start, end: edit.end }, rest));
  return edits;
}

function asText({ start, end }: Slice, bytes: Buffer): ReceiptEdit {
  return { start, end, text: bytes.toString('utf8') };
}
