import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import { ago, engineOf, lanesText } from '../../../engine/api/index.ts';
import type { PublicHit } from '../../../memory/index.ts';
import { contentTokens, provenance, staleNote, terseMeta, uniqueTokens } from '../../../memory/recall/index.ts';
import { type Context, printOrigin } from '../../context.ts';
import { count, parseCount } from '../../terminal/format.ts';
import { truncate, wrapped } from '../../terminal/table.ts';
import type { Term } from '../../terminal/term.ts';

interface Flags {
  readonly top: string;
  readonly session?: string;
  readonly project?: string;
  readonly file?: string;
  readonly explain?: boolean;
  readonly json?: boolean;
}

const WORD = /[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*/gu;
const MOST_WORDS = 8;
const FAR = 'below the relevance filter of recall';
/** Always there with `--explain`; the others where they found something. */
const LANES = ['fts', 'summary', 'trigger', 'raw', 'entity'] as const;

export function registerMemorySearch(memory: Command, context: Context): void {
  memory
    .command('search')
    .description('search memories, best match first')
    .argument('[query...]', 'words or a question; optional with --file')
    .option('--top <n>', 'number of results', '10')
    .option('--session <id>', 'only this session; unambiguous prefix of its id')
    .option('--project <dir>', 'only this project')
    .option('--file <path>', 'memories about this file or directory first')
    .option('--explain', "each lane's rank and score")
    .option('--json', 'print one JSON array')
    .addHelpText(
      'after',
      '\nExample:\n  comet-cc memory search "why did we drop redis" --explain\n  comet-cc memory search --file src/db.ts',
    )
    .action(async (words: string[], flags: Flags) => {
      if (words.join('').trim() === '' && flags.file === undefined) {
        throw new CometError('usage', 'memory search needs words to search for, or --file <path>');
      }
      const client = engineOf(context.paths);
      const hits = await client.call('nodes/search', {
        query: words.join(' '),
        top: parseCount(flags.top, '--top'),
        sessionId: flags.session,
        file: flags.file === undefined ? undefined : path.resolve(flags.file),
        projectDir: flags.project === undefined ? undefined : resolveDirectory(flags.project),
      });
      if (flags.json) return context.term.json(hits.map((hit) => hitJson(hit, flags.explain ?? false)));
      if (hits.length === 0) context.term.say(await nothingFits(context));
      const shown = { query: words.join(' '), explain: flags.explain ?? false, nowMs: Date.now() };
      for (const line of hits.flatMap((hit) => hitLines(hit, shown, context.term))) context.term.out(line);
      if (hits.some(({ isExact }) => isExact)) {
        context.term.say('exact values or wording: read the full text with comet-cc memory show ID --depth 2');
      }
      await printOrigin(
        context,
        client,
        hits.flatMap(({ node, line }) => [node.origin, line.origin]),
      );
    });
}

async function nothingFits(context: Context): Promise<string> {
  const { reindex } = await engineOf(context.paths).call('status', {});
  if (reindex === null) return 'no match';
  const { done, total } = reindex;
  return `no match yet: rebuilding the index, ${count(done)} of ${count(total)} nodes`;
}

/** The node's own fields, with `score` and the verbatim line that matched; the lanes where they are asked for. */
export function hitJson(hit: PublicHit, explain: boolean): Record<string, unknown> {
  const lanes = { ...Object.fromEntries(LANES.map((lane) => [lane, null])), ...hit.lanes };
  const { changed = [], anchored = false, isExact: exact = false, isFar = false } = hit;
  const about = { changed, anchored, exact, fits: !isFar };
  return { ...hit.node, score: hit.score, match: hit.raw, ...about, ...(explain ? { lanes } : {}) };
}

export interface Shown {
  readonly query: string;
  /** Each lane's score too. */
  readonly explain: boolean;
  readonly nowMs: number;
}

/** A hit with the words of the question in it, and what found it. */
export function hitLines(hit: PublicHit, shown: Shown, term: Pick<Term, 'paint' | 'width'>): string[] {
  const { node, raw } = hit;
  const { paint, width } = term;
  const when = ago(Date.parse(node.created_at), shown.nowMs);
  const head = [hit.score.toFixed(3), node.node_id, when, terseMeta(node, { source: provenance(node) })].join('  ');
  const wanted = new Set(contentTokens(shown.query));
  const marked = (text: string): string =>
    truncate(text, width).replace(WORD, (word) => (isWanted(word, wanted) ? paint('bold', word) : word));
  const lines = [paint('cyan', truncate(head, width)), marked(`  ${oneLine(node.summary)}`)];
  if (raw !== null) lines.push(marked(`  "${oneLine(raw.text)}"`));
  if (hit.changed !== undefined) lines.push(paint('yellow', `  ${oneLine(staleNote(hit.changed))}`));
  // Every lane is told to who asks to have it explained.
  const why = wrapped(whyLine(hit, wanted, shown.explain), width - 2, shown.explain ? Number.POSITIVE_INFINITY : 1);
  return [...lines, ...why.map((line) => paint('dim', `  ${line}`))];
}

function whyLine(hit: PublicHit, wanted: ReadonlySet<string>, explain: boolean): string {
  const words = wordsIn([hit.node.summary, hit.node.trigger, hit.raw?.text ?? ''].join('\n'), wanted);
  const lanes = explain
    ? lanesText(hit.lanes)
    : Object.entries(hit.lanes)
        .map(([lane, { rank }]) => `${lane} #${rank}`)
        .join(', ');
  return [
    ...(hit.anchored ? ['about the file'] : hit.isFar ? [FAR] : []),
    ...(words.length > 0 ? [`words: ${words.join(', ')}`] : wanted.size > 0 ? ['no common word, by meaning'] : []),
    ...(lanes === '' ? [] : [lanes]),
  ].join('; ');
}

/** Words of a text that the question has too, in whatever form, each once. */
function wordsIn(text: string, wanted: ReadonlySet<string>): string[] {
  const found = [...oneLine(text).matchAll(WORD)].map(([word]) => word).filter((word) => isWanted(word, wanted));
  return [...new Map(found.map((word) => [word.toLowerCase(), word])).values()].slice(0, MOST_WORDS);
}

function isWanted(word: string, wanted: ReadonlySet<string>): boolean {
  return uniqueTokens(word).some((token) => wanted.has(token));
}
