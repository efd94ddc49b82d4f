import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { openJsonlFile } from './jsonl-file.ts';
import type { Receipt, ReceiptStore } from './receipts.ts';

/** Texts of at least this length are written once and referenced by id. */
const SHARED_CHARS = 100;

/** The line of a receipt and the ids of its shared texts. */
interface EncodedReceipt {
  readonly line: string;
  readonly ids: ReadonlySet<string>;
}

/**
 * One JSON line per receipt and one per long text, because every request of a conversation adds the same texts. Each
 * receipt is encoded once, because a replace writes hundreds of them again.
 *
 * @param redact  applied to each added text
 */
export function openReceiptFile(file: string, redact: (text: string) => string): ReceiptStore {
  const lines = openJsonlFile(file);
  const encoded = new WeakMap<Receipt, EncodedReceipt>();
  /** Redacted shared texts by id, and ids by original text. */
  let texts = new Map<string, string>();
  let idsOf = new Map<string, string>();
  let written = new Set<string>();

  function shareText(text: string): string {
    const known = idsOf.get(text);
    if (known !== undefined) return known;
    const clean = redact(text);
    const id = createHash('sha256').update(clean).digest('base64').slice(0, 22);
    idsOf.set(text, id);
    texts.set(id, clean);
    return id;
  }

  function encode(receipt: Receipt): EncodedReceipt {
    const known = encoded.get(receipt);
    if (known !== undefined) return known;
    const ids = new Set<string>();
    const line = JSON.stringify(receipt, (key, value: unknown) => {
      if (typeof value !== 'string' || key !== 'text') return value;
      if (value.length < SHARED_CHARS) return redact(value);
      const id = shareText(value);
      ids.add(id);
      return { id };
    });
    const result = { line, ids };
    encoded.set(receipt, result);
    return result;
  }

  function encodeLines(receipt: Receipt): string[] {
    const { line, ids } = encode(receipt);
    const fresh = [...ids].filter((id) => !written.has(id));
    for (const id of fresh) written.add(id);
    return [...fresh.map((id) => JSON.stringify({ id, text: texts.get(id) })), line];
  }

  return {
    async load() {
      const found = await readFile(file, 'utf8').catch(() => '');
      const receipts = found.split('\n').flatMap((line) => {
        const ids = new Set<string>();
        const receipt = parseLine(line, texts, ids);
        if (receipt !== null) encoded.set(receipt, { line, ids });
        return receipt ?? [];
      });
      written = new Set(texts.keys());
      return receipts;
    },
    append: (receipt) =>
      lines.append((isEmpty) => {
        if (isEmpty) written = new Set();
        return encodeLines(receipt);
      }),
    replace: (receipts) =>
      lines.replace(() => {
        written = new Set();
        const all = receipts.flatMap(encodeLines);
        texts = new Map([...texts].filter(([id]) => written.has(id)));
        idsOf = new Map([...idsOf].filter(([, id]) => written.has(id)));
        return all;
      }),
    close: () => lines.close(),
  };
}

/** Null for a torn line, a receipt with a missing text, and a shared text, which goes into `texts`. */
function parseLine(line: string, texts: Map<string, string>, ids: Set<string>): Receipt | null {
  if (line === '') return null;
  try {
    const found = JSON.parse(line, (key, value: unknown) => {
      if (key !== 'text' || typeof value !== 'object' || value === null) return value;
      const id = String((value as { id?: unknown }).id);
      const text = texts.get(id);
      if (text === undefined) throw new Error('shared text is missing');
      ids.add(id);
      return text;
    }) as { id?: unknown; text?: unknown; request_id?: unknown; edits?: unknown };
    if (typeof found.id === 'string' && typeof found.text === 'string') {
      texts.set(found.id, found.text);
      return null;
    }
    return typeof found.request_id === 'string' && Array.isArray(found.edits) ? (found as unknown as Receipt) : null;
  } catch {
    return null;
  }
}
