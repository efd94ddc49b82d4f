/**
 * Whether newer statements end those that they end, and no others.
 *
 *   npm run bench:supersession -- [--sessions DIR] [--json]
 *
 * `precision` is the share of right marks among all marks, `recall` that of the found changes among all, on labeled
 * pairs. With `--sessions` the transcripts below DIR (`*.jsonl`, `*.jsonl.gz`)
 * are imported with the rules, and each statement that was ended is printed with the node that ended it, for reading.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { closeSuperseded } from '../memory/compaction/supersede.ts';
import { createTranscriptReader, isComplete } from '../memory/index.ts';
import type { Fact, MemoryNode } from '../memory/model/node.ts';
import { isClosed } from '../memory/text/validity.ts';
import { makeNode } from '../test/helpers/nodes.ts';
import { openProduct } from './recall/product.ts';
import { PAIRS, type StatementPair } from './supersession/pairs.ts';

interface Outcome {
  readonly pairs: number;
  readonly marks: number;
  readonly precision: number;
  readonly recall: number;
  readonly wrong: readonly string[];
}

interface Mark {
  readonly former: string;
  readonly next: string;
  readonly from: string;
  readonly to: string;
}

const { values } = parseArgs({
  options: { sessions: { type: 'string' }, json: { type: 'boolean', default: false } },
});
const outcome = judge(PAIRS);
const marks = values.sessions === undefined ? null : await marksIn(values.sessions);
if (values.json) process.stdout.write(`${JSON.stringify({ outcome, marks }, null, 2)}\n`);
else print();

function judge(pairs: readonly StatementPair[]): Outcome {
  const marked = pairs.filter(({ former, next }) => ends(next, former));
  const right = marked.filter(({ closes }) => closes).length;
  const changes = pairs.filter(({ closes }) => closes).length;
  const wrong = pairs
    .filter((pair) => pair.closes !== marked.includes(pair))
    .map((pair) => `${pair.closes ? 'missed' : 'false'} (${pair.kind}): ${pair.former} | ${pair.next}`);
  const [precision, recall] = [right / Math.max(1, marked.length), right / changes];
  return { pairs: pairs.length, marks: marked.length, precision, recall, wrong };
}

function ends(next: string, former: string): boolean {
  return closeSuperseded(nodeOf(former, 1), nodeOf(next, 2)).facts.some(isClosed);
}

function nodeOf(text: string, day: number): MemoryNode {
  const turn = `turn-${day}`;
  const fact: Fact = { concept: text, value: text, polarity: 'positive', evidence: [turn], origin: 'user' };
  const from = `2026-03-0${day}T10:00:00.000Z`;
  const node_id = `mem_2026030${day}_100000_00000a`;
  return makeNode({ node_id, summary: `user says: ${text}`, turns: [turn], facts: [fact], valid_from: from });
}

async function marksIn(directory: string): Promise<readonly Mark[]> {
  const files = (await readdir(directory)).filter((file) => /\.jsonl(?:\.gz)?$/.test(file)).sort();
  const product = await openProduct();
  try {
    const seen = new Set<string>();
    for (const file of files) {
      const turns = (await turnsOf(path.join(directory, file))).filter(isComplete);
      await product.memory.imports.importTurns({ turns, imported: 'claude', dryRun: false, seen });
    }
    return marksOf(product.memory.library.list({ all: true }));
  } finally {
    await product.close();
  }
}

async function turnsOf(file: string) {
  const bytes = await readFile(file);
  const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
  const sessionId = path.basename(file).replace(/\.jsonl(?:\.gz)?$/, '');
  const reader = createTranscriptReader(sessionId, Math.floor((await stat(file)).mtimeMs));
  for (const line of text.split('\n')) reader.line(line);
  return reader.turns();
}

function marksOf(nodes: readonly MemoryNode[]): Mark[] {
  const summaries = new Map(nodes.map((node) => [node.node_id, node]));
  return nodes.flatMap((node) =>
    node.facts.filter(isClosed).map((fact) => {
      const next = summaries.get(fact.superseded_by ?? '');
      const [from, to] = [node.valid_from.slice(0, 10), (fact.valid_to ?? '').slice(0, 10)];
      return { former: `${fact.origin}: ${fact.value}`, next: next?.summary ?? '', from, to };
    }),
  );
}

function print(): void {
  const { pairs, marks: marked, precision, recall, wrong } = outcome;
  const [sure, found] = [precision, recall].map((share) => `${(share * 100).toFixed(1)} %`);
  process.stdout.write(`${pairs} pairs, ${marked} marks; precision ${sure}, recall ${found}\n`);
  for (const line of wrong) process.stdout.write(`  ${line}\n`);
  if (marks === null) return;
  process.stdout.write(`\n${marks.length} statements ended in ${values.sessions}\n`);
  for (const { former, next, from, to } of marks) process.stdout.write(`\n${from} ${former}\n${to} ${next}\n`);
}
