/**
 * What a reader says of statements in pages that rules wrote from the corpus: worth keeping for months, or junk (an
 * account of the day's work, a request, a remark without its context). Labels are attached to digests; no text is kept.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { Memory } from '../../memory/index.ts';

const Labels = z.record(z.string(), z.enum(['worth', 'junk']));

export interface JunkReport {
  /** Statements in the pages, and those of them that a reader has labeled. */
  readonly statements: number;
  readonly labeled: number;
  readonly junk: number;
  /** Digests that have no label. */
  readonly unlabeled: readonly string[];
}

export async function measureJunk({ library }: Memory): Promise<JunkReport> {
  const labels = Labels.parse(
    JSON.parse(readFileSync(path.resolve(import.meta.dirname, '../../../bench/library/junk.json'), 'utf8')),
  );
  const { topics } = await library.listTopics({});
  const pages = await Promise.all(topics.map(({ name }) => library.readTopic(name, {})));
  const digests = pages.flatMap(({ lines }) => lines.map(({ text }) => digestOf(text)));
  const verdicts = digests.map((digest) => labels[digest]);
  return {
    statements: digests.length,
    labeled: verdicts.filter((verdict) => verdict !== undefined).length,
    junk: verdicts.filter((verdict) => verdict === 'junk').length,
    unlabeled: digests.filter((digest) => labels[digest] === undefined),
  };
}

/** Of the statement, without links and dates. */
export function digestOf(line: string): string {
  const text = line
    .replace(/ \(mem_[^)]*\)$/, '')
    .replace(/ \[valid_\w+:: [\d-]+\]/g, '')
    .replace(/^- /, '');
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
