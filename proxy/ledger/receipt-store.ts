import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Receipt } from '../rewrite/receipt.ts';
import { openJsonlFile } from './jsonl-file.ts';

/** Keeps receipts over restarts. */
export interface ReceiptStore {
  /** Oldest first; what cannot be read is left out. */
  load(): Promise<readonly Receipt[]>;
  append(receipt: Receipt): Promise<void>;
  /** Puts these in the place of all that is kept. */
  replace(receipts: readonly Receipt[]): Promise<void>;
  /** Resolves once all is written. */
  close(): Promise<void>;
}

/** Texts from this length on are written once, however many receipts have them. */
const SHARED_CHARS = 100;

/** A receipt as it is written, and the ids of the long texts in it. */
interface Form {
  readonly line: string;
  readonly ids: ReadonlySet<string>;
}

/**
 * One line of JSON for each receipt, and one for each long text in them: what is added to a conversation is the same
 * in every request of it. A receipt is put into its form once: hundreds are written again at one time.
 *
 * @param redact  last look at each text that was added
 */
export function openReceiptFile(file: string, redact: (text: string) => string): ReceiptStore {
  const lines = openJsonlFile(file);
  const forms = new WeakMap<Receipt, Form>();
  /** Each long text by its id, redacted; and that id by the text as it came. */
  let texts = new Map<string, string>();
  let idsOf = new Map<string, string>();
  let written = new Set<string>();

  function idOf(text: string): string {
    const known = idsOf.get(text);
    if (known !== undefined) return known;
    const clean = redact(text);
    const id = createHash('sha256').update(clean).digest('base64').slice(0, 22);
    idsOf.set(text, id);
    texts.set(id, clean);
    return id;
  }

  function formOf(receipt: Receipt): Form {
    const known = forms.get(receipt);
    if (known !== undefined) return known;
    const ids = new Set<string>();
    const line = JSON.stringify(receipt, (key, value: unknown) => {
      if (typeof value !== 'string' || key !== 'text') return value;
      if (value.length < SHARED_CHARS) return redact(value);
      const id = idOf(value);
      ids.add(id);
      return { id };
    });
    const form = { line, ids };
    forms.set(receipt, form);
    return form;
  }

  function linesOf(receipt: Receipt): string[] {
    const { line, ids } = formOf(receipt);
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
        if (receipt !== null) forms.set(receipt, { line, ids });
        return receipt ?? [];
      });
      written = new Set(texts.keys());
      return receipts;
    },
    append: (receipt) =>
      lines.append((isEmpty) => {
        if (isEmpty) written = new Set();
        return linesOf(receipt);
      }),
    replace: (receipts) =>
      lines.replace(() => {
        written = new Set();
        const all = receipts.flatMap(linesOf);
        texts = new Map([...texts].filter(([id]) => written.has(id)));
        idsOf = new Map([...idsOf].filter(([, id]) => written.has(id)));
        return all;
      }),
    close: () => lines.close(),
  };
}

/** Keeps nothing beyond the process. */
export function createMemoryReceipts(receipts: Receipt[] = []): ReceiptStore {
  return {
    load: async () => [...receipts],
    append: async (receipt) => void receipts.push(receipt),
    replace: async (fresh) => void receipts.splice(0, receipts.length, ...fresh),
    close: async () => {},
  };
}

/** Null for a line that a crash tore, one whose texts are gone, and one that is itself a text, which `texts` gets. */
function parseLine(line: string, texts: Map<string, string>, ids: Set<string>): Receipt | null {
  if (line === '') return null;
  try {
    const found = JSON.parse(line, (key, value: unknown) => {
      if (key !== 'text' || typeof value !== 'object' || value === null) return value;
      const id = String((value as { id?: unknown }).id);
      const text = texts.get(id);
      if (text === undefined) throw new Error('a text is missing');
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
