import { createHash } from 'node:crypto';
import type { Receipt } from '../../proxy/ledger/receipt.ts';
import { applyEdits } from '../../proxy/wire/json.ts';

/** Whether a receipt turns the very body received into the very body sent. */
export function isTrueOf(receipt: Receipt | undefined, received: Buffer, sent: Buffer): boolean {
  if (receipt === undefined) return false;
  const edits = receipt.edits.map(({ start, end, text }) => ({ start, end, bytes: Buffer.from(text) }));
  const named = sha256(received) === receipt.received.sha256 && sha256(sent) === receipt.sent.sha256;
  return named && applyEdits(received, edits).equals(sent);
}

/**
 * Whether a receipt is true of the body sent: it names it, and where it only adds, the body without what it adds is
 * the one received.
 */
export function isTrueOfSent(receipt: Receipt, sent: Buffer): boolean {
  if (sha256(sent) !== receipt.sent.sha256 || sent.length !== receipt.sent.bytes) return false;
  if (!onlyAdds(receipt)) return true;
  const pieces: Buffer[] = [];
  let at = 0;
  let added = 0;
  for (const { start, text } of receipt.edits.toSorted((a, b) => a.start - b.start)) {
    pieces.push(sent.subarray(at, start + added));
    added += Buffer.byteLength(text);
    at = start + added;
  }
  return sha256(Buffer.concat([...pieces, sent.subarray(at)])) === receipt.received.sha256;
}

function onlyAdds({ edits }: Receipt): boolean {
  return edits.length > 0 && edits.every(({ start, end }) => start === end);
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
