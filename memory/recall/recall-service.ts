import { finishesWithin } from '../../common/async.ts';
import type { Config } from '../../common/config.ts';
import type { Scope } from '../../common/policy.ts';
import { localDay } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import type { Pipeline } from '../compaction/pipeline.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { getTaskLists } from '../ingest/turn-registry.ts';
import type { MemoryNode } from '../model/node.ts';
import type { IndexFilter } from '../search/search-index.ts';
import { readStateQuery } from '../text/state-query.ts';
import { memoryLine, quarantinedLine, summaryLine } from './format-memory.ts';
import { latestTasks, taskItems } from './handoff.ts';
import { type Phrase, phraseInNodes, phraseInTurns, readPhrase } from './phrase-search.ts';
import {
  answerStateQuery,
  atTime,
  keptState,
  readProjectState,
  type StateItem,
  stateLine,
  type TaskItems,
  withoutAbandoned,
} from './project-state.ts';
import { hasInstructions, isQuarantined } from './quarantine.ts';
import { getScope, type Recaller } from './recall.ts';
import type { OpenContext } from './session-context.ts';
import type {
  MemoryLine,
  OpenBlock,
  RecallHit,
  RecallRequest,
  SearchOptions,
  SessionContext,
  ShownText,
} from './types.ts';

interface Parts
  extends Pick<
    ServiceParts,
    'clock' | 'redactor' | 'getProject' | 'turnRegistry' | 'turnReader' | 'catalogue' | 'index'
  > {
  readonly config: Pick<Config, 'recall'>;
  readonly pipeline: Pick<Pipeline, 'notice' | 'showed'>;
  readonly recaller: Pick<Recaller, 'recall'>;
  readonly search: Recall['search'];
  readonly openContext: OpenContext;
  readonly libraryBlock: Pick<OpenBlock, 'refresh'>;
  readonly factChanges: (
    request: ShownText & { readonly sessionId: string; readonly project: string },
  ) => Promise<readonly string[]>;
  readonly named: (prefix: string) => string;
  readonly isGone: (turnId: string) => boolean;
  readonly isClosing: () => boolean;
  readonly onActivity: () => void;
}

/** Turns with the words of a phrase that are looked at. */
const PHRASE_TURNS = 200;
/** Part of the time that a first prompt waits for memory. */
const TAILS_MS = 60;
/** Lines are whole as long as all of them stay below this; the preamble's budget of 2,000 tokens holds more. */
const WHOLE_LINES_CHARS = 7_000;

/** What leaves memory for a prompt or a search. */
export type Recall = ReturnType<typeof createRecall>;

export function createRecall(parts: Parts) {
  const { config, clock, redactor, getProject, turnRegistry, turnReader } = parts;
  const { catalogue, pipeline, recaller, search, openContext } = parts;
  const { named, isGone, isClosing, onActivity } = parts;

  /** Waiting turns of the project's other sessions are summarized first, as far as that takes no time. */
  async function noticeTails(sessionId: string, projectDir: string | null): Promise<void> {
    if (!isClosing()) await finishesWithin(pipeline.notice(sessionId, getProject(projectDir)), TAILS_MS);
  }

  /** Answers a question about the state of the work; empty where it asks something else. */
  function readAnswers(query: string, isNear: (node: MemoryNode) => boolean): RecallHit[] {
    const stateQuery = readStateQuery(query);
    if (stateQuery === null) return [];
    const near = withoutAbandoned(catalogue.all().filter(isNear), turnRegistry);
    const state = readProjectState(near, readTasks(parts, isNear));
    return answerStateQuery(stateQuery, state).map(atTime(clock.now())).map(stateHit);
  }

  return {
    /** Best first; empty when nothing passes the relevance filter. @throws the signal's reason */
    async recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]> {
      onActivity();
      const visibleTurns = new Set(
        [...request.visibleTurns].flatMap((turnId) => [turnId, ...turnRegistry.aliases(turnId)]),
      );
      // Private text is not searched for either.
      const prompt = redactor.text(request.prompt);
      const recent = request.recent.map(redactor.text);
      const found = await recaller.recall({ ...request, prompt, recent, visibleTurns }, signal);
      const { sessionId, projectDir, shown } = request;
      const isLeft = ({ node, raw }: RecallHit): boolean => turnRegistry.areAbandoned(raw ? [raw.turn] : node.turns);
      if (readStateQuery(prompt) !== null) await noticeTails(sessionId, projectDir);
      const scope = getScope(request.scope ?? config.recall.scope, sessionId, getProject(projectDir));
      const isNear = (node: MemoryNode): boolean =>
        node.project === (scope.project ?? node.project) && node.session_id === (scope.sessionId ?? node.session_id);
      const answers = readAnswers(prompt, isNear)
        .filter(({ line }) => lowestOrigin([line.origin, config.recall.leastOrigin]) === config.recall.leastOrigin)
        .filter(({ node, raw, line }) => !shown.has(line.text) && !isVisible(node, raw, visibleTurns));
      const hits = [...answers, ...found.filter((hit) => hit.node.session_id !== sessionId || !isLeft(hit))];
      const lines = hits.map(({ line }) => line);
      pipeline.showed(sessionId, lines, shown);
      return hits;
    },
    /**
     * Best first. With `file`, hits about that file or folder come first, newest first where `query` is empty, then what
     * fits the query or names the file. A session may be named by any unambiguous start of its id.
     * @throws CometError `ambiguous_id`
     */
    async search(query: string, { sessionId: prefix, ...options }: SearchOptions): Promise<readonly RecallHit[]> {
      const sessionId = prefix === undefined ? undefined : named(prefix);
      const { projectDir } = options;
      const project = options.project ?? (projectDir === undefined ? undefined : getProject(projectDir));
      const isNear = (node: MemoryNode): boolean =>
        (sessionId ?? node.session_id) === node.session_id && (project ?? node.project) === node.project;
      const hits = await search(query, sessionId === undefined ? options : { ...options, sessionId });
      const answers = readAnswers(query, isNear);
      const filter = { ...(project !== undefined && { project }), ...(sessionId !== undefined && { sessionId }) };
      const phrase = readPhrase(query);
      const exact = phrase === null ? [] : await phraseHits(parts, phrase, { found: hits, isNear, filter });
      const isNew = ({ node, raw }: RecallHit): boolean =>
        !answers.some((answer) => answer.node === node && answer.raw?.text === raw?.text);
      return inOneOrder([...answers, ...withExact(hits, exact, phrase).filter(isNew)].slice(0, options.top));
    },
    /** Tier-1 lines in the order given; unknown ids are left out. */
    lines: (nodeIds: readonly string[]): readonly MemoryLine[] => nodeLines(nodeIds, parts),
    /** For each of these turns, one line with what was said in it; none for a turn without a node that may be shown. */
    async quotes(turnIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const texts = new Map<string, string>();
      for (const [turnId, { quote, origin }] of await turnReader.getWords(turnIds)) {
        const nodes = nodesOf(turnId, parts);
        const [node] = nodes;
        if (node === undefined || nodes.some(isQuarantined) || quote === '') continue;
        if (!isCleanOrigin(origin) && hasInstructions(quote)) continue;
        texts.set(turnId, `- [${node.node_id}] ${localDay(node.valid_from)} ${quote}`);
      }
      return texts;
    },
    /** For each turn that durable nodes cover, their ids; none for a turn that the user removed. Synchronous. */
    nodesCovering(turnIds: readonly string[]): ReadonlyMap<string, readonly string[]> {
      const aliases = turnIds.map(
        (turnId) => [turnId, [...new Set(turnRegistry.aliases(turnId).flatMap(catalogue.nodesCovering))]] as const,
      );
      return new Map(aliases.filter(([turnId, ids]) => ids.length > 0 || isGone(turnId)));
    },
    /** Lines for facts that are not as the conversation was shown them, within `facts.tokens`; none with `session`. */
    async factChanges(sessionId: string, projectDir: string | null, shown: ShownText, scope?: Scope) {
      if (scope === 'session') return [];
      return parts.factChanges({ ...shown, sessionId, project: getProject(projectDir) });
    },
    /** Brief of the session (or the last one of its project), and the passive and pinned lines; its own with `session`. */
    async sessionContext(sessionId: string, projectDir: string | null, scope?: Scope): Promise<SessionContext> {
      onActivity();
      await Promise.all([parts.libraryBlock.refresh(), noticeTails(sessionId, projectDir)]);
      return openContext(sessionId, projectDir, scope);
    },
  };
}

/** What was found of the query so far, and where. */
interface Looked {
  readonly found: readonly RecallHit[];
  readonly isNear: (node: MemoryNode) => boolean;
  readonly filter: IndexFilter;
}

/** What has the phrase word for word. Turns are read where it is quoted, or where nothing else fits. */
async function phraseHits(parts: Parts, phrase: Phrase, { found, isNear, filter }: Looked): Promise<RecallHit[]> {
  const { catalogue, index } = parts;
  const hits = phraseInNodes(phrase, catalogue.all().filter(isNear));
  if (hits.length > 0 || (!phrase.isQuoted && found.some(({ isFar }) => !isFar))) return hits;
  const rows = (await index.search(phrase.text, filter, PHRASE_TURNS, ['raw'])).toSorted((a, b) => b.atMs - a.atMs);
  const nodeIds = rows.map(({ nodeId }) => nodeId);
  const turnIds = rows.flatMap(({ turnId }) => turnId ?? []);
  const texts = await index.turnTexts(nodeIds, turnIds);
  const turns = new Map(
    rows.flatMap(({ turnId }) => {
      const words = texts.get(turnId ?? '');
      return turnId === null || words === undefined ? [] : [[turnId, words] as const];
    }),
  );
  return phraseInTurns(phrase, turns, (turnId) => nodesOf(turnId, parts)[0]);
}

/** Those that fit, those that have the phrase, the others; a quoted phrase comes first. */
function withExact(hits: readonly RecallHit[], exact: readonly RecallHit[], phrase: Phrase | null): RecallHit[] {
  if (phrase?.isQuoted) return joinHits(exact, hits);
  const fits = hits.filter(({ isFar, anchored }) => anchored || !isFar);
  return joinHits(joinHits(fits, exact), hits);
}

/** Then those of other memories. */
function joinHits(first: readonly RecallHit[], then: readonly RecallHit[]): RecallHit[] {
  const ids = new Set(first.map(({ node }) => node.node_id));
  return [...first, ...then.filter(({ node }) => !ids.has(node.node_id))];
}

/** No hit scores more than one before it: the relevance filter and the kind of question decide before the score. */
function inOneOrder(hits: readonly RecallHit[]): RecallHit[] {
  let least = Number.POSITIVE_INFINITY;
  return hits.map((hit) => {
    least = Math.min(least, hit.score);
    return hit.score === least ? hit : { ...hit, score: least };
  });
}

/** Tasks of the agent's list, each with a node of its turn, or else with the newest of its session. */
export function readTasks(
  parts: Pick<Parts, 'turnRegistry' | 'catalogue' | 'clock'>,
  isNear: (node: MemoryNode) => boolean,
): TaskItems {
  const { turnRegistry, catalogue, clock } = parts;
  return taskItems(latestTasks(getTaskLists(turnRegistry), clock.now()), ({ turn, sessionId }) => {
    const own = nodesOf(turn, parts).find(isNear);
    return own ?? catalogue.all().find((node) => node.session_id === sessionId && isNear(node));
  });
}

function nodesOf(turnId: string, { turnRegistry, catalogue }: Pick<Parts, 'turnRegistry' | 'catalogue'>): MemoryNode[] {
  const ids = turnRegistry.aliases(turnId).flatMap(catalogue.nodesCovering);
  return ids.flatMap((id) => catalogue.current(id) ?? []);
}

function stateHit(item: StateItem): RecallHit {
  const { node, text, turn } = item;
  return { node, score: 1, line: stateLine(item), raw: turn === null ? null : { text, turn }, lanes: {} };
}

/** What is said in turns that are sent verbatim needs no recall. */
function isVisible({ turns }: MemoryNode, raw: RecallHit['raw'], visible: ReadonlySet<string>): boolean {
  if (raw !== null) return visible.has(raw.turn);
  return turns.length > 0 && turns.every((turnId) => visible.has(turnId));
}

/** Tier-1 lines of nodes, whole summaries for the newest as far as the budget goes. */
export function nodeLines(
  nodeIds: readonly string[],
  { catalogue, turnRegistry }: Pick<Parts, 'catalogue' | 'turnRegistry'>,
): readonly MemoryLine[] {
  const nodes = [...new Set(nodeIds.flatMap((id) => catalogue.current(id) ?? []))];
  const lines = nodes.map((node) => (isQuarantined(node) ? quarantinedLine(node) : memoryLine(node, null)));
  let left = WHOLE_LINES_CHARS - lines.reduce((sum, line) => sum + line.text.length, 0);
  // The conversation continues from the newest.
  for (const [at, node] of [...nodes.entries()].reverse()) {
    if (isQuarantined(node)) continue;
    const whole = summaryLine(node);
    left -= whole.text.length - (lines[at]?.text.length ?? 0);
    if (left < 0) break;
    lines[at] = whole;
  }
  return lines.map((line, at) => {
    const node = nodes[at] as MemoryNode;
    const kept = keptState(withoutAbandoned([node], turnRegistry)[0] ?? node);
    return kept === undefined ? line : { ...line, kept };
  });
}
