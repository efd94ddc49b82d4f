import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../../common/errors.ts';
import { resolveDirectory } from '../../../common/paths.ts';
import { oneLine } from '../../../common/text.ts';
import { ago, type EngineClient, getEngine, lanesText } from '../../../engine/api/index.ts';
import type { PublicHit, TopicHit } from '../../../memory/index.ts';
import {
  contentTokens,
  isClosed,
  provenance,
  splitSentences,
  staleNote,
  terseMeta,
  toldBy,
  uniqueTokens,
} from '../../../memory/recall/index.ts';
import { addCommand, type CommandFlags, type Context, printOrigin } from '../../context.ts';
import { count, counted, parseCount, shortId } from '../../terminal/format.ts';
import { truncate, wrapped } from '../../terminal/table.ts';
import type { Term } from '../../terminal/term.ts';
import { saveRows } from './ids.ts';
import { badges, projectName } from './list.ts';

type Flags = CommandFlags<'all' | 'explain', 'session' | 'project' | 'file'> & { readonly top: string };

const WORD = /[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*/gu;
const MOST_WORDS = 8;
/** An answer of this length needs no second sentence. */
const MOST_CHARS = 160;
/** Lines of an answer. */
const ROWS = 3;
/** Sections of topic pages. */
const TOPICS = 3;
/** Shown where nothing passes the relevance filter. */
const NEAREST = 3;
const FAR = 'below the relevance filter of recall';
/** Always there with `--explain`; the others where they found something. */
const LANES = ['fts', 'summary', 'trigger', 'raw', 'entity'] as const;

export function registerMemorySearch(memory: Command, context: Context): void {
  const examples =
    'comet-cc memory search "why did we drop redis"\ncomet-cc memory search \'"still to do"\'   the exact words\n' +
    'comet-cc memory search --file src/db.ts';
  addCommand(memory, 'search', 'search memories: the sentence that answers, then where it is from', examples)
    .argument('[query...]', 'words or a question; optional with --file')
    .option('--all', 'also weaker matches')
    .option('--top <n>', 'number of results', '10')
    .option('--session <id>', 'only this session; unambiguous prefix of its id')
    .option('--project <dir>', 'only this project')
    .option('--file <path>', 'memories about this file or directory first')
    .option('--explain', 'why each was found: words, ranks and scores')
    .option('--json', 'print one JSON array, weaker matches included (fits: false)')
    .action(async (words: string[], flags: Flags) => {
      const { term } = context;
      const query = words.join(' ');
      if (query.trim() === '' && flags.file === undefined)
        throw new CometError('usage', 'memory search needs words to search for, or --file <path>');
      const client = context.engine;
      const hits = await client.call('nodes/search', {
        query,
        top: parseCount(flags.top, '--top'),
        sessionId: flags.session,
        file: flags.file === undefined ? undefined : path.resolve(flags.file),
        projectDir: flags.project === undefined ? undefined : resolveDirectory(flags.project),
      });
      const topics = await topicHits(client, query, flags, hits);
      if (flags.json)
        return term.json([
          ...hits.map((hit) => hitJson(hit, flags.explain ?? false)),
          ...topics.map(({ id, topic: _, lines, nodes, ...hit }) => ({
            ...{ node_id: id, ...hit, passage: lines.join('\n'), links: nodes },
          })),
        ]);
      if (hits.length + topics.length === 0) return term.say(await nothingFits(context));
      const fitting = hits.filter(({ isFar = false }) => flags.all || flags.explain || !isFar);
      const isNear = fitting.length + topics.length > 0;
      const shown = isNear ? fitting : hits.slice(0, NEAREST);
      if (!isNear) term.say('nothing fits well; the nearest:');
      await saveRows(context, 'memory', [...new Map(shown.map(({ node }) => [node.node_id, node])).values()]);
      const look = { query, explain: flags.explain ?? false, nowMs: Date.now() };
      await term.page([...searchLines(shown, look, term), ...topics.flatMap((topic) => topicLines(topic, term))]);
      if (shown.length < hits.length) {
        term.say(`${counted(hits.length - shown.length, 'weaker match', 'weaker matches')}: --all`);
      }
      if (shown.some(({ isExact }) => isExact))
        term.say('for exact values and wording read the conversation: comet-cc memory show ID --conversation');
      await printOrigin(context, [...shown.flatMap(({ node, line }) => [node, line]), ...topics]);
    });
}

/** Sections of topic pages that fit and say what no memory above says. */
function topicHits(client: EngineClient, query: string, { session, file, project }: Flags, hits: readonly PublicHit[]) {
  if (query.trim() === '' || session !== undefined || file !== undefined) return [];
  const projectDir = project === undefined ? undefined : resolveDirectory(project);
  const nodeIds = hits.filter(({ isFar }) => !isFar).map(({ node }) => node.node_id);
  return client.call('topics/search', { query, top: TOPICS, told: nodeIds.slice(0, 1_000), projectDir });
}

export function topicLines({ id, title, section, lines }: TopicHit, { paint, width }: Pick<Term, 'paint' | 'width'>) {
  const place = oneLine(section === '' ? title : `${title}, ${section}`);
  const rows = lines.flatMap((line) => wrapped(oneLine(line), width, ROWS));
  return [...rows, paint('dim', truncate(`${place}  ${oneLine(id)}`, width))];
}

async function nothingFits(context: Context): Promise<string> {
  const { reindex } = await getEngine(context.paths).call('status', {});
  if (reindex === null) return 'no match';
  const { done, total } = reindex;
  return `no match yet: rebuilding the index, ${count(done)} of ${count(total)} memories`;
}

/** The node's own fields, with `score` and the verbatim line that matched; the lanes where they are asked for. */
export function hitJson(hit: PublicHit, explain: boolean): Record<string, unknown> {
  const lanes = { ...Object.fromEntries(LANES.map((lane) => [lane, null])), ...hit.lanes };
  const { changed = [], anchored = false, isExact: exact = false, isFar = false } = hit;
  const about = { changed, anchored, exact, fits: !isFar };
  const entry = { score: hit.score, match: hit.raw, passage: hit.raw?.text ?? hit.node.summary };
  return { ...hit.node, ...entry, ...about, ...(explain ? { lanes } : {}) };
}

export interface SearchOutput {
  readonly query: string;
  /** Each lane's score too. */
  readonly explain: boolean;
  readonly nowMs: number;
}

/** Hits of one memory, as of a question about the state of the work, share its name. */
export function searchLines(hits: readonly PublicHit[], output: SearchOutput, term: Pick<Term, 'paint' | 'width'>) {
  const projects = new Set(hits.map(({ node }) => node.project)).size > 1;
  const ids = [...new Set(hits.map(({ node }) => node.node_id))];
  const pad = String(ids.length).length + 2;
  return ids.flatMap((id, row) => {
    const own = hits.filter(({ node }) => node.node_id === id);
    const lines = hitLines(own, { ...output, projects }, { ...term, width: term.width - pad });
    const number = term.paint('dim', String(row + 1).padEnd(pad));
    return lines.map((line, at) => (at === 0 ? number : ' '.repeat(pad)) + line);
  });
}

/** What answers, with the words of the question marked, then the memory that says it. */
export function hitLines(
  hits: readonly PublicHit[],
  output: SearchOutput & { readonly projects?: boolean },
  { paint, width }: Pick<Term, 'paint' | 'width'>,
): string[] {
  const [{ node, changed }] = hits as readonly [PublicHit];
  const wanted = new Set(contentTokens(output.query));
  const mark = (line: string) => line.replace(WORD, (word) => (isWanted(word, wanted) ? paint('bold', word) : word));
  const answers = [...new Set(hits.map((hit) => findAnswer(hit, wanted)))];
  const lines = answers.flatMap((text) => wrapped(text, width, ROWS)).map(mark);
  const about = [
    ...(answers.some((text) => text.includes(oneLine(node.title))) ? [] : [oneLine(node.title)]),
    ...(output.projects ? [projectName(node.project)] : []),
    ago(Date.parse(node.created_at), output.nowMs),
    ...badges(node).filter((badge) => badge !== 'decision'),
  ].join(', ');
  const id = output.explain ? node.node_id : shortId(node.node_id);
  lines.push(paint('dim', `${truncate(about, width - id.length - 2)}  ${id}`));
  if (changed !== undefined) lines.push(paint('yellow', truncate(oneLine(staleNote(changed)), width)));
  if (!output.explain) return lines;
  const meta = terseMeta(node, { source: provenance(node) });
  const why = hits.flatMap((hit) => wrapped(`${hit.score.toFixed(3)} ${meta}; ${whyLine(hit, wanted)}`, width));
  return [...lines, ...why.map((line) => paint('dim', line))];
}

/** The sentence that has most words of the question, of the turn before the memory, with a short one after it. */
function findAnswer({ node, raw }: PublicHit, wanted: ReadonlySet<string>): string {
  const { title, outcome = '', decisions = [], open = [], summary, facts } = node;
  const isOver = toldBy(facts.filter(isClosed));
  // Not the title, which may end before the answer: the summary says it as well.
  const own = [...[...decisions, ...open].flatMap(({ text, closed }) => (closed ? [] : text)), outcome, summary];
  const getSentences = (text: string): string[] => text.split('\n').flatMap(splitSentences).map(oneLine);
  const rest = own.map((text) => getSentences(text).filter((sentence) => !isOver(sentence)));
  const sentences = [getSentences(raw?.text ?? ''), ...rest];
  const shared = (text: string): number => new Set(uniqueTokens(text).filter((token) => wanted.has(token))).size;
  const most = Math.max(...sentences.flat().map(shared));
  const text = sentences.find((each) => each.some((sentence) => shared(sentence) === most)) ?? [];
  const [answer = title, next = ''] = text.slice(text.findIndex((sentence) => shared(sentence) === most));
  return answer.length + next.length < MOST_CHARS && next !== '' ? `${answer} ${next}` : answer;
}

function whyLine(hit: PublicHit, wanted: ReadonlySet<string>): string {
  const text = oneLine([hit.node.summary, hit.node.trigger, hit.raw?.text ?? ''].join('\n'));
  const shared = [...text.matchAll(WORD)].map(([word]) => word).filter((word) => isWanted(word, wanted));
  // In whatever form, each once.
  const words = [...new Map(shared.map((word) => [word.toLowerCase(), word])).values()].slice(0, MOST_WORDS);
  const lanes = lanesText(hit.lanes);
  return [
    ...(hit.anchored ? ['about the file'] : hit.isFar ? [FAR] : []),
    ...(words.length > 0 ? [`words: ${words.join(', ')}`] : wanted.size > 0 ? ['no common word, by meaning'] : []),
    ...(lanes === '' ? [] : [lanes]),
  ].join('; ');
}

function isWanted(word: string, wanted: ReadonlySet<string>): boolean {
  return uniqueTokens(word).some((token) => wanted.has(token));
}
