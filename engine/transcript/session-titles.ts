import { stat } from 'node:fs/promises';
import path from 'node:path';
import { readPart } from '../../common/files.ts';
import { LruMap, slices } from '../../common/map.ts';
import { clip, isRecord, oneLine, parseJson, toRecord } from '../../common/text.ts';
import { transcripts } from './files.ts';

export type SessionTitles = ReturnType<typeof createSessionTitles>;

const TITLE_CHARS = 70;
const READ_CHARS = 1_000;
const MOST_KNOWN = 5_000;
/** Titles stand near the start or, repeated when a session ends, near the end; the first prompt near the start. */
const START_BYTES = 256 * 1024;
const END_BYTES = 64 * 1024;
/** Read at the same time. */
const BATCH = 32;

/**
 * Titles as Claude Code's transcripts have them: that covers past sessions and titles given by hand, which the proxy
 * never sees. Nothing is stored; a transcript is read again when it has changed.
 * @param redact  titles are written by a model that saw the session, so they may quote a secret
 */
export function createSessionTitles(claudeDir: string, redact: (text: string) => string) {
  const titleCache = new LruMap<string, { readonly version: string; readonly title: string }>(MOST_KNOWN);

  async function findTitle(id: string, file: string): Promise<string> {
    const before = titleCache.get(file) ?? { version: '', title: '' };
    const ends = await readEnds(file, before.version);
    if (ends === null) return before.title;
    // A long answer may have moved the title out of the parts that are read.
    const title = shortTitle(redact(clip(ownTitle(ends.text, id), READ_CHARS))) || before.title;
    titleCache.set(file, { version: ends.version, title });
    return title;
  }

  return {
    /** Claude Code's own titles of these sessions, on one line each; those without one are left out. Never throws. */
    async of(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const wanted = new Set(ids);
      const files = (await transcripts(claudeDir)).filter(({ id }) => wanted.has(id));
      const titles = new Map<string, string>();
      for (const batch of slices(files, BATCH)) {
        const read = batch.map(({ id, file }) => findTitle(id, file).catch(() => ''));
        for (const [at, title] of (await Promise.all(read)).entries()) {
          if (title !== '') titles.set(batch[at]?.id ?? '', title);
        }
      }
      return titles;
    },
  };
}

/** Claude Code's own title of a session, else its first prompt; '' where neither can be read. */
export async function transcriptTitle(file: string): Promise<string> {
  const text = (await readEnds(file, '').catch(() => null))?.text ?? '';
  return shortTitle(ownTitle(text, path.basename(file, '.jsonl')) || firstPrompt(text));
}

const shortTitle = (text: string): string => clip(oneLine(text), TITLE_CHARS);

/** The user's title, else the model's, else the summary of a version that had no titles; '' without any. */
function ownTitle(text: string, sessionId: string): string {
  const lines = text.split('\n').filter((line) => /"(?:custom-title|ai-title|summary)"/.test(line));
  const entries = lines.map(parseJson).filter(isRecord);
  const last = (type: string, key: string): string => {
    const own = entries.filter((entry) => entry['type'] === type && (entry['sessionId'] ?? sessionId) === sessionId);
    return String(own.findLast((entry) => typeof entry[key] === 'string')?.[key] ?? '');
  };
  // A summary may be that of another session, whose messages are not in this file.
  const isHere = (uuid: unknown): boolean =>
    typeof uuid === 'string' && text.includes(`"uuid":${JSON.stringify(uuid)}`);
  const summarized = entries.filter(({ type, leafUuid }) => type === 'summary' && isHere(leafUuid));
  const summary = summarized.findLast((entry) => typeof entry['summary'] === 'string')?.['summary'];
  return last('custom-title', 'customTitle') || last('ai-title', 'aiTitle') || String(summary ?? '');
}

function firstPrompt(text: string): string {
  const lines = text.split('\n').map(parseJson).filter(isRecord);
  const texts = lines.flatMap(({ type, isMeta, message }) => {
    const { content } = type === 'user' && isMeta !== true ? toRecord(message) : {};
    return Array.isArray(content) ? content.map((block) => toRecord(block)['text']) : [content];
  });
  return texts.find((each): each is string => typeof each === 'string' && each !== '' && !each.startsWith('<')) ?? '';
}

/** Start and end of a file; null where it still has this version. */
async function readEnds(file: string, title: string) {
  const { size, mtimeMs } = await stat(file);
  const version = `${size} ${mtimeMs}`;
  if (version === title) return null;
  const start = Math.min(size, START_BYTES);
  const end = Math.min(size - start, END_BYTES);
  return { text: `${await readPart(file, 0, start)}\n${await readPart(file, size - end, end)}`, version };
}
