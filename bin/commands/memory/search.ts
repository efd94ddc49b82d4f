import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { terseMeta } from '../../../memory/core/meta-tags.ts';
import { staleNote } from '../../../memory/core/staleness.ts';
import type { RecallHit } from '../../../memory/face.ts';
import type { Context } from '../../context.ts';
import { engineOf } from '../../engine.ts';
import { ago, lanesText, oneLine, parseCount, truncate } from '../../format.ts';
import type { Term } from '../../term.ts';

interface Flags {
  readonly top: string;
  readonly session?: string;
  readonly project?: string;
  readonly file?: string;
  readonly explain?: boolean;
  readonly json?: boolean;
}

/** Always there with `--explain`; the others where they found something. */
const LANES = ['fts', 'summary', 'trigger', 'raw', 'entity'] as const;

export function registerMemorySearch(memory: Command, context: Context): void {
  memory
    .command('search')
    .description('what recall would find, best first')
    .argument('[query...]', 'words or a question; with --file it may be left out')
    .option('--top <n>', 'at most so many', '10')
    .option('--session <id>', 'of this session only; any unambiguous start of its id')
    .option('--project <dir>', 'of this project only')
    .option('--file <path>', 'what is about this file or folder first')
    .option('--explain', "each lane's rank and score")
    .option('--json', 'print one JSON array')
    .addHelpText(
      'after',
      '\nExample:\n  comet-cc memory search "why did we drop redis" --explain\n  comet-cc memory search --file src/db.ts',
    )
    .action(async (words: string[], flags: Flags) => {
      if (words.length === 0 && flags.file === undefined) {
        throw new CometError('usage', 'memory search takes words to look for, or --file <path>');
      }
      const hits = await engineOf(context.paths).call('nodes/search', {
        query: words.join(' '),
        top: parseCount(flags.top, '--top'),
        ...(flags.session === undefined ? {} : { sessionId: flags.session }),
        ...(flags.file === undefined ? {} : { file: path.resolve(flags.file) }),
        ...(flags.project === undefined ? {} : { projectDir: path.resolve(flags.project) }),
      });
      if (flags.json) return context.term.json(hits.map((hit) => hitJson(hit, flags.explain ?? false)));
      if (hits.length === 0) context.term.say('nothing fits');
      for (const line of hits.flatMap((hit) => hitLines(hit, flags.explain ?? false, context.term, Date.now()))) {
        context.term.out(line);
      }
      if (hits.some(({ isExact }) => isExact)) {
        context.term.say('this asks for an exact value or wording: read it in full, comet-cc memory show ID --depth 2');
      }
    });
}

/** The node's own fields, with `score` and the verbatim line that matched; the lanes where they are asked for. */
export function hitJson(hit: RecallHit, explain: boolean): Record<string, unknown> {
  const lanes = { ...Object.fromEntries(LANES.map((lane) => [lane, null])), ...hit.lanes };
  const about = { changed: hit.changed ?? [], anchored: hit.anchored ?? false, exact: hit.isExact ?? false };
  return { ...hit.node, score: hit.score, match: hit.raw, ...about, ...(explain ? { lanes } : {}) };
}

export function hitLines(
  hit: RecallHit,
  explain: boolean,
  term: Pick<Term, 'paint' | 'width'>,
  nowMs: number,
): string[] {
  const { node } = hit;
  const head = [hit.score.toFixed(3), node.node_id, ago(Date.parse(node.created_at), nowMs), terseMeta(node)].join(
    '  ',
  );
  const lines = [term.paint('cyan', head), truncate(`  ${oneLine(node.summary)}`, term.width)];
  if (hit.raw !== null) lines.push(term.paint('dim', truncate(`  "${oneLine(hit.raw.text)}"`, term.width)));
  if (hit.changed !== undefined) lines.push(term.paint('yellow', `  ${oneLine(staleNote(hit.changed))}`));
  if (!explain) return lines;
  return [...lines, term.paint('dim', `  ${lanesText(hit.lanes)}`)];
}
