import type { Config } from '../common/config.ts';
import { isCleanOrigin, type Origin } from '../common/turn.ts';
import { answerKind } from './core/answer-kind.ts';
import { passesGate, type QueryWeights, UNSEEN, weighEvidence, weighQuery } from './core/gate.ts';
import { memoryLine, RAW_CHARS, type RawLine } from './core/memory-line.ts';
import type { MemoryNode } from './core/node.ts';
import { contentTokens, namesCall, recallQuery } from './core/query.ts';
import { chooseRaw } from './core/raw-choice.ts';
import { type Candidate, fuse, isNearDuplicate, LANE_WEIGHTS, type LaneWeights } from './core/recall.ts';
import { bestSnippet, piecesOf, type Snippet, type SnippetRules } from './core/snippet.ts';
import { type FileChange, freshnessFactor, staleNote } from './core/staleness.ts';
import type { Memory, RecallHit, RecallRequest } from './face.ts';
import type { FileMemory, Freshness } from './file-memory.ts';
import type { IndexFilter, NodeIndex } from './ports.ts';

export interface RecallerDeps {
  readonly index: NodeIndex;
  /** The node of an id from memory; null where the index is behind. */
  readonly nodeOf: (nodeId: string) => MemoryNode | null;
  /** Text and origin of a turn by its `end`, redacted; null where it is not known. */
  readonly turnText: (end: string) => TurnOfMemory | null | Promise<TurnOfMemory | null>;
  /** Project key of a directory, '' for null. */
  readonly projectOf: (directory: string | null) => string;
  /** Where it is not given, no memory is stale. */
  readonly files?: Pick<FileMemory, 'freshness'>;
  readonly config: Pick<Config['recall'], 'scope' | 'topK' | 'minCoverage' | 'minSimilarity'>;
  readonly weights?: LaneWeights;
}

export interface TurnOfMemory {
  readonly text: string;
  readonly origin: Origin;
  /** What of it the user wrote. */
  readonly user?: string;
}

export interface Recaller {
  /**
   * What fits the prompt, best first; empty when nothing does.
   *
   * @throws the signal's reason as soon as it aborts; CometError `index_failed`
   */
  recall(request: RecallRequest, signal: AbortSignal): Promise<readonly RecallHit[]>;
  /** The same without the gate: whoever asks in so many words is shown the nearest there is. */
  search: Memory['search'];
}

/** Hits asked of each lane. */
const LANE_LIMIT = 40;
/** Turns of one node that are read for the line to show, and how much of them all together. */
const TURNS_READ = 16;
const READ_CHARS = 80_000;
/** How long somebody who asks waits to be told which files changed; a prompt waits less. */
export const ASKED_MS = 250;
/** So many times what is wanted is looked at; below that nothing passes the gate, and reading turns takes time. */
const LOOKED_AT = 3;

interface Search {
  readonly query: string;
  readonly projectDir: string | null;
  readonly filter: IndexFilter;
  readonly limit: number;
  readonly gated: boolean;
  readonly skips: (node: MemoryNode) => boolean;
  readonly shown: ReadonlySet<string>;
}

export function createRecaller(deps: RecallerDeps): Recaller {
  const { index, nodeOf, projectOf, config } = deps;

  async function find({ query, projectDir, filter, limit, gated, skips, shown }: Search): Promise<RecallHit[]> {
    const tokens = contentTokens(query);
    if (tokens.length === 0) return [];
    const hits = await index.search(query, { filter, limit: LANE_LIMIT });
    const weights = weighQuery(tokens, index.termWeights([...tokens, UNSEEN], filter));
    const rules = { maxChars: RAW_CHARS, callsAnswer: namesCall(query), kind: answerKind(query) };
    const found: RecallHit[] = [];
    const ranked = fuse(hits, deps.weights ?? LANE_WEIGHTS).filter(({ nodeId }) => wanted(nodeOf(nodeId), skips));
    const looked = ranked.slice(0, limit * LOOKED_AT);
    const nodes = looked.flatMap(({ nodeId }) => nodeOf(nodeId) ?? []);
    const freshness = await deps.files?.freshness(nodes, projectDir, gated ? undefined : ASKED_MS);
    const changesOf = (nodeId: string): readonly FileChange[] => freshness?.get(nodeId)?.changes ?? [];
    for (const candidate of demoted(looked, freshness)) {
      if (found.length === limit) break;
      const node = nodeOf(candidate.nodeId);
      if (node === null) continue;
      const raw = await rawLine(candidate, node, { weights, rules }, deps);
      const said = raw === null ? [] : [raw.text, raw.asked];
      const texts = [node.summary, node.trigger, ...node.topic_tags, ...factTexts(node), ...said];
      const evidence = weighEvidence(weights, texts, candidate.similarity);
      if (
        gated ? !passesGate(evidence, config) : evidence.coverage === 0 && candidate.similarity < config.minSimilarity
      ) {
        continue;
      }
      const changed = changesOf(node.node_id);
      const quoted = raw === null ? null : { ...raw, origin: await originOf(raw, deps) };
      const line = memoryLine(node, quoted, staleNote(changed));
      if (shown.has(line.text) || found.some((hit) => isNearDuplicate(hit.node.summary, node.summary))) continue;
      const { score, lanes } = candidate;
      const hit = { node, score, line, lanes, raw: raw === null ? null : { text: raw.text, turn: raw.turn } };
      found.push(changed.length === 0 ? hit : { ...hit, changed });
    }
    return found;
  }

  return {
    async recall(request, signal) {
      signal.throwIfAborted();
      const query = recallQuery(request.prompt, request.recent);
      const { visibleTurns, shown } = request;
      const visible = ({ turns }: MemoryNode): boolean =>
        turns.length > 0 && turns.every((end) => visibleTurns.has(end));
      const filter = scopeOf(config.scope, request.sessionId, projectOf(request.projectDir));
      const { projectDir } = request;
      const search = { query, projectDir, filter, limit: config.topK, gated: true, skips: visible, shown };
      return beforeAbort(find(search), signal);
    },

    search: (query, { top, sessionId, projectDir }) =>
      find({
        query,
        projectDir: projectDir ?? null,
        filter: {
          ...(sessionId === undefined ? {} : { sessionId }),
          ...(projectDir === undefined ? {} : { project: projectOf(projectDir) }),
        },
        limit: top,
        gated: false,
        skips: () => false,
        shown: new Set(),
      }),
  };
}

/** Nodes whose files changed since give way to those whose did not. */
function demoted(candidates: readonly Candidate[], freshness?: ReadonlyMap<string, Freshness>): readonly Candidate[] {
  if (freshness === undefined || freshness.size === 0) return candidates;
  const weighed = candidates.map((candidate) => {
    const { files = 0, changes = [] } = freshness.get(candidate.nodeId) ?? {};
    return { ...candidate, score: candidate.score * freshnessFactor(changes.length, files) };
  });
  return weighed.sort((left, right) => right.score - left.score);
}

function wanted(node: MemoryNode | null, skips: (node: MemoryNode) => boolean): boolean {
  return node !== null && node.superseded_by === null && !skips(node);
}

/** Without a project nobody else's memories are near: the session alone. */
function scopeOf(scope: Config['recall']['scope'], sessionId: string, project: string): IndexFilter {
  if (scope === 'all') return {};
  return scope === 'session' || project === '' ? { sessionId } : { project };
}

type Offered = Snippet & RawLine;

/** The line of the node's turns that answers best; turns that a lane found are read first. */
async function rawLine(
  { turns: found }: Candidate,
  node: MemoryNode,
  { weights, rules }: { readonly weights: QueryWeights; readonly rules: SnippetRules },
  { turnText }: RecallerDeps,
): Promise<Offered | null> {
  const known = new Map(found.map((row) => [row.turn, { text: row.text, origin: row.origin }]));
  const ends = [...new Set([...known.keys(), ...node.turns])].slice(0, TURNS_READ);
  const inOrder = ends.toSorted((one, other) => node.turns.indexOf(one) - node.turns.indexOf(other));
  const offered: Offered[] = [];
  let left = READ_CHARS;
  let carried = 0;
  for (const end of inOrder) {
    const turn = known.get(end) ?? (await turnText(end));
    const text = turn?.text.slice(0, left) ?? '';
    const snippet = bestSnippet(text, weights, { ...rules, carried });
    if (turn !== null && snippet !== null) offered.push({ ...snippet, turn: end, origin: turn.origin });
    left -= text.length;
    carried = snippet?.worth ?? 0;
  }
  return chooseRaw(offered, weights);
}

/** A turn may be tainted by what came later in it; the user's own words in it are not. */
async function originOf({ text, turn, origin }: RawLine, { turnText }: RecallerDeps): Promise<Origin> {
  if (isCleanOrigin(origin)) return origin;
  const { user = '' } = (await turnText(turn)) ?? {};
  return piecesOf(user, RAW_CHARS).includes(text) ? 'user' : origin;
}

function factTexts({ facts }: MemoryNode): string[] {
  return facts.map(({ concept, value }) => `${concept} ${value}`);
}

async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
    // The loser of the race must not end as an unhandled rejection.
    void work.catch(() => undefined);
  }
}
