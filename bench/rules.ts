/**
 * What each regular expression of the summary without a model changes.
 *
 *   npm run bench:rules -- [--data DIR] [--most N] [--json]
 *
 * The turns of real sessions, of a LoCoMo dialogue (where DIR has them), of the demo's story and of an invented history
 * are summarized in batches as in use, and again with one expression at a time that matches nothing. Printed is in how
 * many batches of each corpus the nodes or the brief become others; with --most only expressions that change at most N.
 * One that changes none is not shown to be of use by these corpora, which are mostly English.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { parseAst } from 'vitest/node';
import { builtFile, homePaths } from '../common/paths.ts';
import type { summarizeByRules } from '../memory/compaction/rules-summary.ts';
import { readTurn } from '../memory/ingest/turn-trust.ts';
import type { TurnText } from '../memory/model/turn.ts';
import { openJournal } from '../memory/storage/fs/turn-log.ts';
import { createHistory } from './coding/history.ts';
import { storyConversations } from './labeled.ts';
import { DATA } from './paths.ts';
import { withCorpus } from './real/corpus.ts';
import { importCorpus, openRealMemory } from './real/product.ts';
import { getTurns, readDialogues } from './recall/dialogues.ts';

const BATCH = 5;
/** All five take a quarter of an hour. */
const DIALOGUES = 1;
const COMPACTION = builtFile('js', 'memory', 'compaction');
const TURN = path.join(COMPACTION, 'turn');
const SUMMARY = path.join(COMPACTION, 'rules-summary.js');
const FILES = [
  ...readdirSync(TURN).map((name) => path.join(TURN, name)),
  ...['turn-state.js', 'rules-summary.js', 'rules-brief.js'].map((name) => path.join(COMPACTION, name)),
];
/** With a query, Node loads the modules of the summary again. The query names a file and the part of it to replace. */
const HOOKS = `
  export async function resolve(specifier, context, next) {
    const found = await next(specifier, context);
    const query = /\\?.*$/.exec(context.parentURL ?? '')?.[0] ?? '';
    return /\\/memory\\/(?:compaction|text)\\//.test(found.url) ? { ...found, url: found.url + query } : found;
  }
  export async function load(url, context, next) {
    const { pathname, searchParams: query } = new URL(url);
    const loaded = await next(url, context);
    if (pathname !== query.get('file')) return loaded;
    const text = String(loaded.source);
    const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
    return { ...loaded, source: text.slice(0, from) + query.get('instead') + text.slice(to) };
  }`;

interface Rule {
  readonly name: string;
  readonly chars: number;
  /** Of the module whose rules lack it. */
  readonly query: string;
}

interface Change {
  readonly name: string;
  readonly chars: number;
  /** Batches, by corpus. */
  readonly changed: readonly number[];
}

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: DATA },
    most: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const corpora = new Map<string, TurnText[][]>([
  ['invented', [createHistory(1).turns.map(readTurn)]],
  ['story', storyConversations().map((turns) => turns.map(({ turn }) => turn))],
]);
const dialogues = path.join(values.data, 'locomo-fit.json');
if (existsSync(dialogues)) corpora.set('dialogues', readDialogues(dialogues).slice(0, DIALOGUES).map(readTurns));
await withCorpus(values.data, async (_, home) => corpora.set('real', await readSessions(home)));
const batches = [...corpora].map(([name, sessions]) => ({ name, batches: sessions.flatMap(divide) }));

register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
const rules = FILES.flatMap(findRules);
const whole = await summarizeAll('');
const changes: Change[] = [];
for (const { name, chars, query } of rules) {
  const without = await summarizeAll(query);
  if (process.stderr.isTTY) process.stderr.write(`\r${name.padEnd(50)}`);
  const changed = whole.map((texts, at) => texts.filter((text, batch) => text !== without[at]?.[batch]).length);
  if (Math.max(...changed) <= Number(values.most ?? Number.POSITIVE_INFINITY)) changes.push({ name, chars, changed });
}
print();

function readTurns(dialogue: Parameters<typeof getTurns>[0]): TurnText[] {
  return getTurns(dialogue).map(({ turn }) => readTurn(turn));
}

async function readSessions(home: string): Promise<TurnText[][]> {
  const memory = await openRealMemory(home);
  await importCorpus(memory, home);
  await memory.maintenance.close();
  const dir = homePaths(path.join(home, '.comet-cc')).journalDir;
  const journal = await openJournal({ dir, report: () => undefined });
  const sessions = await journal.sessions();
  const turns = await Promise.all(sessions.map((sessionId) => journal.read(sessionId)));
  await journal.close();
  return turns.map((own) => own.map(readTurn));
}

function divide(turns: readonly TurnText[]): { readonly turns: readonly TurnText[]; readonly before?: TurnText }[] {
  return turns.flatMap((_, at) => {
    const before = turns[at - 1];
    if (at % BATCH !== 0) return [];
    return [{ turns: turns.slice(at, at + BATCH), ...(before === undefined ? {} : { before }) }];
  });
}

/** Literals of the compiled file, by the constant that holds them or their line. */
function findRules(file: string): Rule[] {
  const text = readFileSync(file, 'utf8');
  const found: Rule[] = [];
  const visit = (node: unknown, name: string): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, id, start, end, regex } = node as {
      type?: string;
      id?: { name?: string };
      start: number;
      end: number;
      regex?: { flags: string };
    };
    const own = type === 'VariableDeclarator' ? (id?.name ?? name) : type === 'Function' ? '' : name;
    if (type === 'Literal' && regex !== undefined) {
      const line = text.slice(0, start).split('\n').length;
      const instead = `/(?!)/${regex.flags}`;
      const query = new URLSearchParams({ file, from: `${start}`, to: `${end}`, instead });
      const place = /^[A-Z_]+$/.test(own) ? own : `line ${line} (compiled)`;
      found.push({ name: `${path.basename(file, '.js')}: ${place}`, chars: end - start, query: `?${query}` });
    }
    for (const child of Object.values(node)) visit(child, own);
  };
  visit(parseAst(text), '');
  return found;
}

async function summarizeAll(query: string): Promise<string[][]> {
  const module = (await import(`${pathToFileURL(SUMMARY)}${query}`)) as { summarizeByRules: typeof summarizeByRules };
  return batches.map(({ batches: own }) =>
    own.map((input) => JSON.stringify(module.summarizeByRules({ ...input, knownTags: [], brief: '' }))),
  );
}

function print(): void {
  const sorted = changes.toSorted((one, other) => sum(one.changed) - sum(other.changed));
  const names = batches.map(({ name, batches: own }) => `${name} (${own.length})`);
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ batches: names, rules: sorted }, null, 2)}\n`);
    return;
  }
  process.stdout.write(`${rules.length} expressions; batches changed of ${names.join(', ')}\n`);
  for (const { name, chars, changed } of sorted)
    process.stdout.write(`${changed.join(' ').padEnd(10)} ${name} (${chars} characters)\n`);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, each) => total + each, 0);
}
