import { createHash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ensureDir, writeFileAtomic } from '../common/files.ts';
import type { Receipt } from './wire/receipt.ts';

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

/**
 * One line of JSON for each receipt, and one for each long text in them: what is added to a conversation is the same
 * in every request of it.
 *
 * @param redact  last look at a line before it is written; only what is ours stands in it
 */
export function openReceiptFile(file: string, redact: (line: string) => string): ReceiptStore {
  let shared = new Set<string>();
  let last: Promise<void> = Promise.resolve();
  const inOrder = (work: () => Promise<void>): Promise<void> => {
    const mine = last.then(work);
    last = mine.then(
      () => {},
      () => {}, // the caller is told
    );
    return mine;
  };

  function linesOf(receipt: Receipt): string[] {
    const texts: string[] = [];
    const line = redact(
      JSON.stringify(receipt, (key, value: unknown) => {
        if (key !== 'text' || typeof value !== 'string' || value.length < SHARED_CHARS) return value;
        const id = createHash('sha256').update(value).digest('base64').slice(0, 22);
        if (!shared.has(id)) texts.push(redact(JSON.stringify({ id, text: value })));
        shared.add(id);
        return { id };
      }),
    );
    return [...texts, line];
  }

  return {
    async load() {
      const lines = await readFile(file, 'utf8').catch(() => '');
      const texts = new Map<string, string>();
      const receipts = lines.split('\n').flatMap((line) => parseLine(line, texts));
      shared = new Set(texts.keys());
      return receipts;
    },
    append: (receipt) =>
      inOrder(async () => {
        await ensureDir(path.dirname(file));
        const handle = await open(file, 'a', 0o600);
        try {
          if ((await handle.stat()).size === 0) shared = new Set();
          await handle.appendFile(
            linesOf(receipt)
              .map((line) => `\n${line}`)
              .join(''),
          );
        } finally {
          await handle.close();
        }
      }),
    replace: (receipts) =>
      inOrder(async () => {
        await ensureDir(path.dirname(file));
        shared = new Set();
        await writeFileAtomic(file, receipts.flatMap(linesOf).join('\n'));
      }),
    close: () => last,
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

/** A line that a crash tore, or whose texts are gone, is none. */
function parseLine(line: string, texts: Map<string, string>): Receipt[] {
  if (line === '') return [];
  try {
    const found = JSON.parse(line, (key, value: unknown) => {
      if (key !== 'text' || typeof value !== 'object' || value === null) return value;
      const text = texts.get(String((value as { id?: unknown }).id));
      if (text === undefined) throw new Error('a text is missing');
      return text;
    }) as { id?: unknown; text?: unknown; request_id?: unknown; edits?: unknown };
    if (typeof found.id === 'string' && typeof found.text === 'string') {
      texts.set(found.id, found.text);
      return [];
    }
    return typeof found.request_id === 'string' && Array.isArray(found.edits) ? [found as unknown as Receipt] : [];
  } catch {
    return [];
  }
}
