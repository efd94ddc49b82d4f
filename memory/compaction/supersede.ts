import { setImmediate as nextTick } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { memoize } from '../../common/map.ts';
import { lowestOrigin, type Origin } from '../../common/turn.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import type { Fact, MemoryNode, StatementRef } from '../model/node.ts';
import { getAnswers, type TurnText } from '../model/turn.ts';
import type { KnownStatement } from '../models/model.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { getAnchors, topicTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';
import { currentSummary, isClosed, isPast, summaryParts, toldBy } from '../text/validity.ts';
import { DONE, type Ending, endsStatement, getEnding } from './supersede-rules.ts';

/** Nodes processed before yielding to the event loop. */
const NODES_PER_SLICE = 500;
/** Newest nodes of a project searched for known statements, and statements shown to a model. */
const MAX_SEARCHED_NODES = 1_000;
const MAX_KNOWN_FACTS = 40;
const MIN_SHARED_TOPICS = 2;

/** Finds statements that newer ones supersede. */
export type Revisions = ReturnType<typeof createRevisions>;

export function createRevisions(
  catalogue: Pick<NodeRegistry, 'all'>,
  { areAbandoned }: Pick<TurnRegistry, 'areAbandoned'>,
) {
  return {
    /**
     * Returns everything to save: `fresh`, closed where newer nodes supersede it, and the older nodes it supersedes.
     * @param named  per node of `fresh`, statements its writer names as superseded
     * @param turns  the turns of `fresh`: evidence for what the writer names
     */
    async apply(
      fresh: readonly MemoryNode[],
      named: readonly (readonly StatementRef[])[] = [],
      turns: readonly TurnText[] = [],
    ): Promise<readonly MemoryNode[]> {
      const changed = new Map(fresh.map((node) => [node.node_id, node]));
      const naming = new Map(fresh.map((node, at) => [node.node_id, getNaming(node, named[at] ?? [], turns)]));
      const close = (former: MemoryNode, next: MemoryNode): void => {
        const now = changed.get(former.node_id) ?? former;
        const closed = closeSuperseded(now, next, naming.get(next.node_id));
        if (closed !== now) changed.set(former.node_id, closed);
      };
      const counting = fresh.filter(({ turns: own }) => !areAbandoned(own));
      const ordered = counting.toSorted((a, b) => a.valid_from.localeCompare(b.valid_from));
      for (const next of ordered) for (const former of ordered) close(former, next);
      const projects = new Set(fresh.map(({ project }) => project));
      const others = catalogue.all().filter(({ node_id: id, project }) => !changed.has(id) && projects.has(project));
      for (const [at, known] of others.entries()) {
        if (at % NODES_PER_SLICE === NODES_PER_SLICE - 1) await nextTick();
        for (const node of ordered) {
          close(known, node);
          close(node, known);
        }
      }
      return [...changed.values()];
    },

    /** Facts of the project, but no stranger's, that these turns may supersede, most likely first. */
    knownFacts(project: string, turns: readonly TurnText[]): readonly KnownStatement[] {
      const said = turns.map((turn) => [turn.user, ...getAnswers(turn)].join('\n').slice(0, 20_000));
      const topicWords = new Set(said.flatMap(topicTokens));
      const turnIds = new Set(turns.map(({ turnId }) => turnId));
      const until = new Date(turns.at(-1)?.atMs ?? 0).toISOString();
      const isFormer = (node: MemoryNode): boolean => !isPast(node) && node.valid_from < until;
      const nodes = catalogue.all().filter((node) => node.project === project && isFormer(node));
      return nodes
        .slice(0, MAX_SEARCHED_NODES)
        .filter(({ turns: own }) => !own.some((turnId) => turnIds.has(turnId)))
        .flatMap((node) =>
          openFacts(node).flatMap(({ text, origin, fact }) => {
            const shared = sharedTopics(text, topicWords);
            if (shared === 0 || origin === 'external') return [];
            const ref = { nodeId: node.node_id, fact };
            return [{ kind: 'fact' as const, ref, text, origin, date: node.valid_from.slice(0, 10), shared }];
          }),
        )
        .sort((a, b) => b.shared - a.shared)
        .slice(0, MAX_KNOWN_FACTS)
        .map(({ shared: _, ...statement }) => statement);
    },
  };
}

/** Number of topics that `said` has too; 0 if too few to be about the same. */
function sharedTopics(text: string, topicWords: ReadonlySet<string>): number {
  const topics = topicTokens(text).filter((token) => token.length > 1 || /\P{ASCII}|\d/u.test(token));
  const shared = topics.filter((token) => topicWords.has(token)).length;
  return shared < Math.min(MIN_SHARED_TOPICS, topics.length) ? 0 : shared;
}

/** What the writer of a node names as superseded, and what the user said in its turns. */
type Naming = NonNullable<ReturnType<typeof getNaming>>;

function getNaming(node: MemoryNode, refs: readonly StatementRef[], turns: readonly TurnText[]) {
  if (refs.length === 0) return undefined;
  const own = turns.filter(({ turnId, origin, userOrigin }) => {
    return node.turns.includes(turnId) && userOrigin === undefined && origin !== 'external';
  });
  return { refs, userTopics: new Set(own.flatMap(({ user }) => topicTokens(user.slice(0, 20_000)))) };
}

interface Statement {
  readonly text: string;
  readonly origin: Origin;
  readonly polarity: Fact['polarity'];
  /** Index in the node's facts; null for a part of the summary or a decision that no fact repeats. */
  readonly fact: number | null;
}

function openStatements(node: MemoryNode): Statement[] {
  const parts = summaryParts(node).map(
    ({ text, isUsers }) => ({ text, origin: isUsers ? 'user' : node.origin }) as const,
  );
  const isFact = toldBy(node.facts);
  const decisions = (node.decisions ?? []).filter(({ closed }) => closed === undefined);
  const rest = [...parts, ...decisions].filter(({ text }) => !isFact(text));
  return [
    ...openFacts(node),
    ...rest.map(({ text, origin }): Statement => ({ text, origin, polarity: 'positive', fact: null })),
  ];
}

/** Facts that are not superseded, each as one text. */
export function openFacts(node: MemoryNode): (Statement & { readonly fact: number })[] {
  return node.facts.flatMap((fact, at) => {
    if (isClosed(fact)) return [];
    const words = new Set(tokenize(fact.value));
    const isNamed = tokenize(fact.concept).every((token) => words.has(token));
    const text = isNamed ? fact.value : `${fact.concept}: ${fact.value}`;
    return [{ text, origin: fact.origin ?? node.origin, polarity: fact.polarity, fact: at }];
  });
}

/**
 * Closes the facts of `former` that `next` supersedes; a superseded statement without a fact becomes a closed fact, and
 * a node without open statements is closed as a whole. Returns the same node if nothing changes. A less trusted
 * origin never supersedes a more trusted one; what a writer names counts as the user's if the user spoke of it.
 */
export function closeSuperseded(former: MemoryNode, next: MemoryNode, naming?: Naming): MemoryNode {
  if (!isBefore(former, next)) return former;
  const refs = naming?.refs.filter(({ nodeId }) => nodeId === former.node_id) ?? [];
  const own = getEndings(next);
  if (refs.length === 0 && (own.length === 0 || !mayEnd(own, former))) return former;
  const closed = openStatements(former).filter(({ text, origin, fact }) => {
    if (own.some((ending) => isAtLeast(ending.origin, origin) && endsStatement(ending, text))) return true;
    if (!refs.some((ref) => ref.fact === null || ref.fact === fact)) return false;
    return isAtLeast(sharedTopics(text, naming?.userTopics ?? new Set()) > 0 ? 'user' : next.origin, origin);
  });
  return closed.length === 0 ? former : withClosed(former, closed, next);
}

/** Carries the closed facts of replaced nodes over to their successor. */
export function withRevisionsOf(heir: MemoryNode, formers: readonly MemoryNode[]): MemoryNode {
  const own = formers.filter(({ turns }) => turns.some((turnId) => heir.turns.includes(turnId)));
  const closed = own.flatMap(({ facts }) => facts.filter(isClosed));
  if (closed.length === 0) return heir;
  const isClosedBy = toldBy(closed);
  const open = heir.facts.filter((fact) => !isClosedBy(`${fact.concept}: ${fact.value}`));
  return closeIfSuperseded({ ...heir, facts: [...open, ...closed] });
}

/** Compares what the writer wrote, ignoring later supersession, links, parent and detail. */
export function isSameWork(before: MemoryNode, after: MemoryNode): boolean {
  if (before === after) return true;
  const kept = before.facts.length;
  return isDeepStrictEqual(asWritten(before, kept), asWritten(after, kept)) && after.facts.slice(kept).every(isClosed);
}

function asWritten(node: MemoryNode, facts: number): unknown {
  const { links: _, parent_node_id: __, depth_level: ___, kind: ____kind, ...rest } = node;
  const { valid_to: ____, superseded_by: _____, superseded_as: ______, ...whole } = rest;
  const { detailed_summary: _7, detailed_by: _8, detailed_origin: _9, ...written } = whole;
  const stated = node.facts.slice(0, facts).map(({ concept, value, polarity, evidence }) => {
    return { concept, value, polarity, evidence };
  });
  return { ...written, facts: stated };
}

function isBefore(former: MemoryNode, next: MemoryNode): boolean {
  if (former.node_id === next.node_id || isPast(former) || isPast(next) || former.pinned_from !== undefined)
    return false;
  if (former.project !== next.project || former.turns.some((turnId) => next.turns.includes(turnId))) return false;
  return former.valid_from < next.valid_from;
}

const isAtLeast = (origin: Origin, other: Origin): boolean => lowestOrigin([origin, other]) === other;

function withClosed(former: MemoryNode, closed: readonly Statement[], next: MemoryNode): MemoryNode {
  const end = { valid_to: next.valid_from, superseded_by: next.node_id };
  const places = new Set(closed.map(({ fact }) => fact));
  const facts = former.facts.map((fact, at) => (places.has(at) ? { ...fact, ...end } : fact));
  const added = closed
    .filter(({ fact }) => fact === null)
    .map(
      ({ text, origin, polarity }): Fact => ({
        concept: getAnchors(text).slice(0, 2).join(' or ') || 'statement',
        value: text,
        polarity,
        evidence: [...former.turns],
        origin,
        valid_from: former.valid_from,
        ...end,
      }),
    );
  return closeIfSuperseded({ ...former, facts: [...facts, ...added] });
}

function closeIfSuperseded(node: MemoryNode): MemoryNode {
  const closed = node.facts.filter(isClosed);
  if (closed.length < node.facts.length || currentSummary(node) !== null) return node;
  const last = closed.toSorted((a, b) => (a.valid_to ?? '').localeCompare(b.valid_to ?? '')).at(-1);
  return {
    ...node,
    valid_to: last?.valid_to ?? null,
    superseded_by: last?.superseded_by ?? null,
    superseded_as: 'revised',
  };
}

type SaidEnding = Ending & { readonly origin: Origin };

/** What the user's sentences end, and what the assistant says that it replaced. */
const getEndings = memoize((node: MemoryNode): readonly SaidEnding[] =>
  openStatements(node).flatMap(({ text, origin }): SaidEnding[] => {
    const ending = origin === 'user' || (origin === 'assistant' && DONE.test(text)) ? getEnding(text) : null;
    const { fresh = [], assertion = null } = ending ?? {};
    const mayEnd = origin === 'user' || fresh.length > 0 || (assertion?.isNew === true && assertion.kind === 'figure');
    return ending === null || !mayEnd ? [] : [{ ...ending, origin }];
  }),
);

/** Cheap pre-check on the text of a node. */
function mayEnd(own: readonly Ending[], { summary, facts, decisions = [] }: MemoryNode): boolean {
  const allText = [
    summary,
    ...decisions.map(({ text }) => text),
    ...facts.flatMap(({ concept, value }) => [concept, value]),
  ];
  const text = allText.join(' ').toLowerCase();
  // A stem lacks at most the last letter of its word.
  const begins = (word: string): string => (word.length > 4 ? word.slice(0, -1) : word);
  return own.some(({ shared }) => shared.every((word) => text.includes(begins(word))));
}
