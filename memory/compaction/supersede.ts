import { setImmediate as nextTick } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import { hashOf } from '../ingest/string-interner.ts';
import type { Fact, MemoryNode, StatementRef } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { KnownStatement } from '../models/model.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { anchorsOf, topicTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';
import { currentSummary, isClosed, isPast, summaryParts, toldBy } from '../text/validity.ts';
import {
  LEAST_SHARED,
  type ParsedStatement,
  parseStatement,
  revisesStatement,
  topicsOf,
} from './supersession-patterns.ts';

interface OpenFact {
  readonly text: string;
  readonly origin: Origin;
  /** Index in the node's facts. */
  readonly fact: number;
}

interface Statement {
  readonly stated: ParsedStatement;
  readonly origin: Origin;
  readonly polarity: Fact['polarity'];
  /** Null for a part of the summary that no fact repeats. */
  readonly fact: number | null;
}

/** Statements take kilobytes per node: cache few, and a fingerprint of each node. */
const LATELY = 64;
let lately = new WeakMap<MemoryNode, readonly Statement[]>();
let latelyCount = 0;
const fingerprints = new WeakMap<MemoryNode, TokenFingerprint>();

function openStatements(node: MemoryNode): readonly Statement[] {
  const known = lately.get(node);
  if (known !== undefined) return known;
  const statements = isPast(node) ? [] : statementsOf(node);
  if (latelyCount === LATELY) {
    lately = new WeakMap();
    latelyCount = 0;
  }
  latelyCount += 1;
  lately.set(node, statements);
  return statements;
}

function statementsOf(node: MemoryNode): Statement[] {
  const facts = openFacts(node).map(({ text, origin, fact }): Statement => {
    const { polarity } = node.facts[fact] as Fact;
    return { stated: parseStatement(text), origin, polarity, fact };
  });
  const isFact = toldBy(node.facts);
  const rest = summaryParts(node)
    .filter(({ text }) => !isFact(text))
    .map(({ text, isUsers }): Statement => {
      const origin = isUsers ? 'user' : node.origin;
      return { stated: parseStatement(text), origin, polarity: 'positive', fact: null };
    });
  return [...facts, ...rest];
}

/** Facts that are not superseded, each as one text. */
export function openFacts(node: MemoryNode): OpenFact[] {
  return node.facts.flatMap((fact, at) => {
    if (isClosed(fact)) return [];
    const said = new Set(tokenize(fact.value));
    const isNamed = tokenize(fact.concept).every((token) => said.has(token));
    const text = isNamed ? fact.value : `${fact.concept}: ${fact.value}`;
    return [{ text, origin: fact.origin ?? node.origin, fact: at }];
  });
}

function revisingStatements(node: MemoryNode): readonly Statement[] {
  return openStatements(node).filter((statement) => statement.stated.cue !== null);
}

/** Topic words of the statements that may supersede others. */
export function revisingTopics(node: MemoryNode): string[] {
  return [...new Set(revisingStatements(node).flatMap((statement) => [...statement.stated.topics]))];
}

/** Cheap pre-check: false only if `next` supersedes nothing in `former`. */
export function mayConcern(next: MemoryNode, former: MemoryNode): boolean {
  return mayRevise(fingerprintOf(next), fingerprintOf(former));
}

function fingerprintOf(node: MemoryNode): TokenFingerprint {
  const known = fingerprints.get(node) ?? tokenFingerprint(openStatements(node).map((statement) => statement.stated));
  fingerprints.set(node, known);
  return known;
}

/**
 * Closes the facts of `former` that `next` supersedes; a superseded statement without a fact becomes a closed fact, and
 * a node without open statements is closed as a whole. Returns the same node if nothing changes. A less trusted origin
 * never supersedes a more trusted one.
 *
 * @param named  statements that the writer of `next` names as superseded
 */
export function closeSuperseded(former: MemoryNode, next: MemoryNode, named: readonly StatementRef[] = []): MemoryNode {
  if (!isBefore(former, next)) return former;
  const own = named.filter(({ nodeId }) => nodeId === former.node_id);
  if (own.length === 0 && !mayConcern(next, former)) return former;
  const isNamed = (at: number | null): boolean => own.some(({ fact }) => fact === null || fact === at);
  const revising = revisingStatements(next);
  const closed = openStatements(former).filter((statement) => {
    if (isNamed(statement.fact) && isAtLeast(next.origin, statement.origin)) return true;
    return revising.some(
      (fresh) => isAtLeast(fresh.origin, statement.origin) && revisesStatement(fresh.stated, statement.stated),
    );
  });
  return closed.length === 0 ? former : withClosed(former, closed, next);
}

/** Carries the closed facts of replaced nodes over to their successor. */
export function withRevisionsOf(heir: MemoryNode, formers: readonly MemoryNode[]): MemoryNode {
  const own = formers.filter(({ turns }) => turns.some((turnId) => heir.turns.includes(turnId)));
  const closed = own.flatMap(({ facts }) => facts.filter(isClosed));
  const last = own.at(-1);
  if (closed.length === 0 || last === undefined) return heir;
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

function isAtLeast(origin: Origin, other: Origin): boolean {
  return lowestOrigin([origin, other]) === other;
}

function withClosed(former: MemoryNode, closed: readonly Statement[], next: MemoryNode): MemoryNode {
  const end = { valid_to: next.valid_from, superseded_by: next.node_id };
  const places = new Set(closed.map(({ fact }) => fact));
  const facts = former.facts.map((fact, at) => (places.has(at) ? { ...fact, ...end } : fact));
  const added = closed
    .filter(({ fact }) => fact === null)
    .map(
      ({ stated: { text }, origin, polarity }): Fact => ({
        concept: anchorsOf(text).slice(0, 2).join(' or ') || 'statement',
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

/** Closes the node when all of its statements are closed. */
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

/** Sorted 16-bit word hashes of a node's statements. A string takes a fraction of the memory of an array. */
type TokenFingerprint = string;

/** Topic of a superseding statement. */
const SUBJECT = 1;
/** Names the former value. */
const FORMER = 2;
const ROLES = SUBJECT | FORMER;
const HASH = 0xffff - ROLES;

export function tokenFingerprint(statements: readonly ParsedStatement[]): TokenFingerprint {
  const roles = new Map<string, number>();
  const add = (words: Iterable<string>, role: number): void => {
    for (const word of words) roles.set(word, (roles.get(word) ?? 0) | role);
  };
  for (const { tokens, cue, formers } of statements) {
    add(tokens, 0);
    if (cue === null) continue;
    add(cue.topics, SUBJECT);
    for (const former of formers) add(former.tokens, FORMER);
  }
  const words = Uint16Array.from(roles, ([word, role]) => (hashOf(word) & HASH) | role).sort();
  return Buffer.from(words.buffer).toString('utf16le');
}

/** False only if no statement of `next` supersedes one of `former`; hash collisions can only add matches. */
export function mayRevise(next: TokenFingerprint, former: TokenFingerprint): boolean {
  let shared = 0;
  for (let at = 0, other = 0; at < next.length && other < former.length; ) {
    const word = next.charCodeAt(at);
    const apart = (word & HASH) - (former.charCodeAt(other) & HASH);
    if (apart > 0) other += 1;
    else at += 1;
    if (apart !== 0) continue;
    if ((word & FORMER) !== 0) return true;
    if ((word & SUBJECT) !== 0) shared += 1;
    if (shared === LEAST_SHARED) return true;
  }
  return false;
}

/** Nodes processed before yielding to the event loop. */
const NODES_PER_SLICE = 500;
/** Newest nodes of a project searched for known statements, and statements shown to a model. */
const MAX_SEARCHED_NODES = 1_000;
const MAX_KNOWN_STATEMENTS = 40;
const MIN_SHARED_TOPICS = 2;

/** Finds statements that newer ones supersede. */
export interface Revisions {
  /**
   * Returns everything to save: `fresh`, closed where newer nodes supersede it, and the older nodes it supersedes.
   *
   * @param named  per node of `fresh`, statements its writer names as superseded
   */
  apply(fresh: readonly MemoryNode[], named?: readonly (readonly StatementRef[])[]): Promise<readonly MemoryNode[]>;
  /** Trusted statements of the project that these turns may supersede, most likely first. */
  known(project: string, turns: readonly TurnText[]): readonly KnownStatement[];
}

export function createRevisions(catalogue: Pick<NodeRegistry, 'all'>): Revisions {
  return {
    async apply(fresh, named = []) {
      const ids = new Set(fresh.map((node) => node.node_id));
      const changed = new Map(fresh.map((node) => [node.node_id, node]));
      const close = (former: MemoryNode, next: MemoryNode, said?: readonly StatementRef[]): void => {
        const closed = closeSuperseded(former, next, said);
        if (closed !== former) changed.set(former.node_id, closed);
      };
      const ordered = [...fresh.entries()].sort(([, a], [, b]) => a.valid_from.localeCompare(b.valid_from));
      for (const [at, next] of ordered) {
        for (const [, former] of ordered) close(changed.get(former.node_id) as MemoryNode, next, named[at]);
      }
      const saying = ordered
        .map(([at, node]) => ({ node, topics: revisingTopics(node), own: named[at] ?? [] }))
        .filter(({ own, topics }) => own.length > 0 || topics.length > 0);
      const projects = new Set(fresh.map(({ project }) => project));
      let looked = 0;
      for (const known of catalogue.all()) {
        if (ids.has(known.node_id) || !projects.has(known.project) || isPast(known)) continue;
        looked += 1;
        if (looked % NODES_PER_SLICE === 0) await nextTick();
        const text = saying.length === 0 ? '' : statedText(known);
        for (const { node, topics, own } of saying) {
          const isNamed = own.some(({ nodeId }) => nodeId === known.node_id);
          const concerns = node.project === known.project && topics.some((token) => text.includes(token));
          if (isNamed || concerns) close(changed.get(known.node_id) ?? known, node, own);
        }
        for (const { node_id } of isNewer(known, fresh) ? fresh : []) {
          const own = changed.get(node_id) as MemoryNode;
          if (own.project !== known.project || !mayConcern(known, own)) continue;
          const said = statedText(own);
          if (revisingTopics(known).some((token) => said.includes(token))) close(own, known);
        }
      }
      return [...changed.values()];
    },

    known(project, turns) {
      const said = new Set(topicTokens(turns.map(({ user, parts }) => textOf(user, parts)).join('\n')));
      const turnIds = new Set(turns.map(({ turnId }) => turnId));
      const nodes = catalogue.all().filter((node) => node.project === project && !isPast(node));
      return nodes
        .slice(0, MAX_SEARCHED_NODES)
        .filter(({ turns: own }) => !own.some((turnId) => turnIds.has(turnId)))
        .flatMap((node) =>
          openFacts(node).flatMap(({ text, origin, fact }) => {
            const shared = topicsOf(text).filter((token) => said.has(token)).length;
            if (shared < MIN_SHARED_TOPICS || !isCleanOrigin(origin)) return [];
            return [{ nodeId: node.node_id, fact, text, date: node.valid_from.slice(0, 10), shared }];
          }),
        )
        .sort((a, b) => b.shared - a.shared)
        .slice(0, MAX_KNOWN_STATEMENTS)
        .map(({ shared: _, ...statement }) => statement);
    },
  };
}

function statedText({ summary, facts }: MemoryNode): string {
  return [summary, ...facts.flatMap(({ concept, value }) => [concept, value])].join(' ').toLowerCase();
}

function isNewer(known: MemoryNode, fresh: readonly MemoryNode[]): boolean {
  return fresh.some((node) => node.project === known.project && node.valid_from < known.valid_from);
}

function textOf(user: string, parts: TurnText['parts']): string {
  const said = parts.filter(({ kind }) => kind === 'assistant').map(({ text }) => text);
  return [user, ...said].join('\n').slice(0, 20_000);
}
