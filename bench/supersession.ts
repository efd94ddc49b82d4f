/**
 * Whether newer statements end those that they end, and no others.
 *
 *   npm run bench:supersession -- [--sessions DIR] [--ablate] [--json]
 *
 * `precision` is the share of right marks among all marks, `recall` that of the found changes among all, on labeled
 * pairs. With `--sessions` the transcripts below DIR (`*.jsonl`, `*.jsonl.gz`)
 * are imported with the rules, and each statement that was ended is printed with the node that ended it, for reading.
 * `--ablate` judges the pairs again with one rule at a time switched off or one constant changed.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { ENDING_RULES, type EndingRules, endsStatement, getEnding } from '../memory/compaction/supersede-rules.ts';
import { createTranscriptReader, isComplete } from '../memory/index.ts';
import type { MemoryNode } from '../memory/model/node.ts';
import { isClosed } from '../memory/text/validity.ts';
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
  options: {
    sessions: { type: 'string' },
    ablate: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const NEVER = /(?!)/;
const ALWAYS = /(?:)/;
const REPLACEMENT_FORMS = [
  ...['“instead of X”', '“…, not X”', '“replace X with Y”', '“change from X to Y”', '“rename X to Y”'],
  ...['“X is now called Y”', '“move off X”', '“drop X”', '“代替 X”', '“X 대신 Y”'],
];
const DOUBTS = [
  ...['questions and quotes', 'questions by their first word', 'what somebody is doing', 'guesses and plans'],
  ...['reports and additions', 'refusals'],
];
const outcome = judge(PAIRS);
const ablation = values.ablate ? ablate() : [];
const marks = values.sessions === undefined ? null : await marksIn(values.sessions);
if (values.json) process.stdout.write(`${JSON.stringify({ outcome, ablation, marks }, null, 2)}\n`);
else print();

function judge(pairs: readonly StatementPair[], rules: EndingRules = ENDING_RULES): Outcome {
  const marked = pairs.filter(({ former, next }) => {
    const ending = getEnding(next, rules);
    return ending !== null && endsStatement(ending, former, rules);
  });
  const right = marked.filter(({ closes }) => closes).length;
  const changes = pairs.filter(({ closes }) => closes).length;
  const wrong = pairs
    .filter((pair) => pair.closes !== marked.includes(pair))
    .map((pair) => `${pair.closes ? 'missed' : 'false'} (${pair.kind}): ${pair.former} | ${pair.next}`);
  const [precision, recall] = [right / Math.max(1, marked.length), right / changes];
  return { pairs: pairs.length, marks: marked.length, precision, recall, wrong };
}

function ablate(): (Outcome & { readonly change: string })[] {
  const { replacements, doubt, maxChars } = ENDING_RULES;
  const without = <T>(all: readonly T[], at: number): T[] => all.filter((_, nth) => nth !== at);
  const changes: (readonly [change: string, rules: Partial<EndingRules>])[] = [
    ...REPLACEMENT_FORMS.map((form, at) => [`without ${form}`, { replacements: without(replacements, at) }] as const),
    ['without negations', { negation: NEVER }],
    ['without words of a change (now, set to)', { now: NEVER }],
    ...DOUBTS.map((form, at) => [`without doubt: ${form}`, { doubt: without(doubt, at) }] as const),
    ['without exceptions (but, only)', { except: NEVER }],
    ['without leaving out quotes', { quoted: NEVER }],
    ['without polite requests', { polite: NEVER }],
    ['former statements may be negative', { negative: NEVER }],
    ['any word may precede what is used', { usesWord: ALWAYS }],
    ['only a verb of use may precede it', { usesName: NEVER }],
    ['what is used may stand beside others', { coupled: NEVER }],
    ['any verb gives an attribute a value', { lasting: ALWAYS }],
    ['without names of attributes', { attributes: new Set() }],
    ['texts of twice the length', { maxChars: maxChars * 2 }],
    ['texts of half the length', { maxChars: maxChars / 2 }],
    ['texts of an eighth of the length', { maxChars: maxChars / 8 }],
  ];
  return changes.map(([change, rules]) => ({ change, ...judge(PAIRS, { ...ENDING_RULES, ...rules }) }));
}

async function marksIn(directory: string): Promise<readonly Mark[]> {
  const files = (await readdir(directory)).filter((file) => /\.jsonl(?:\.gz)?$/.test(file)).sort();
  const product = await openProduct();
  try {
    const seen = new Set<string>();
    for (const file of files) {
      const turns = (await getTurns(path.join(directory, file))).filter(isComplete);
      await product.memory.imports.importTurns({ turns, imported: 'claude', dryRun: false, seen });
    }
    return getMarks(product.memory.library.list({ all: true }));
  } finally {
    await product.close();
  }
}

async function getTurns(file: string) {
  const bytes = await readFile(file);
  const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
  const sessionId = path.basename(file).replace(/\.jsonl(?:\.gz)?$/, '');
  const reader = createTranscriptReader(sessionId, Math.floor((await stat(file)).mtimeMs));
  for (const line of text.split('\n')) reader.line(line);
  return reader.turns();
}

function getMarks(nodes: readonly MemoryNode[]): Mark[] {
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
  const figures = ({ marks: marked, precision, recall }: Outcome): string => {
    const [sure, found] = [precision, recall].map((share) => `${(share * 100).toFixed(1)} %`);
    return `${marked} marks; precision ${sure}, recall ${found}`;
  };
  const { pairs, wrong } = outcome;
  process.stdout.write(`${pairs} pairs, ${figures(outcome)}\n`);
  for (const row of ablation) process.stdout.write(`  ${row.change}: ${figures(row)}\n`);
  for (const line of wrong) process.stdout.write(`  ${line}\n`);
  if (marks === null) return;
  process.stdout.write(`\n${marks.length} statements ended in ${values.sessions}\n`);
  for (const { former, next, from, to } of marks) process.stdout.write(`\n${from} ${former}\n${to} ${next}\n`);
}
