import { setImmediate as nextTick } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import { hashOf } from '../ingest/string-interner.ts';
import type { StatementRef } from '../model/claim.ts';
import type { Fact, MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { currentSummary, isClosed, isPast, summaryParts, toldBy } from '../model/validity.ts';
import type { KnownStatement } from '../models/language-model.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { anchorsOf, topicTokens } from '../text/keywords.ts';
import { tokenize } from '../text/tokenizer.ts';
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
  /** Its place in the node's facts. */
  readonly fact: number;
}

/** One thing that a node says. */
interface Statement {
  readonly stated: ParsedStatement;
  readonly origin: Origin;
  readonly polarity: Fact['polarity'];
  /** Null for a part of the summary that no fact says. */
  readonly fact: number | null;
}

/** Statements take some kilobytes a node: those of few nodes are kept, and a gist of each. */
const LATELY = 64;
let lately = new WeakMap<MemoryNode, readonly Statement[]>();
let latelyCount = 0;
const fingerprints = new WeakMap<MemoryNode, TokenFingerprint>();

/** What of a node is still so. */
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

/** Facts of a node that are still so, each as one text. */
export function openFacts(node: MemoryNode): OpenFact[] {
  return node.facts.flatMap((fact, at) => {
    if (isClosed(fact)) return [];
    const said = new Set(tokenize(fact.value));
    const isNamed = tokenize(fact.concept).every((token) => said.has(token));
    const text = isNamed ? fact.value : `${fact.concept}: ${fact.value}`;
    return [{ text, origin: fact.origin ?? node.origin, fact: at }];
  });
}

/** Statements that may revise others. */
function revisingStatements(node: MemoryNode): readonly Statement[] {
  return openStatements(node).filter((statement) => statement.stated.cue !== null);
}

/** Words that say what its revising statements are about. */
export function revisingTopics(node: MemoryNode): string[] {
  return [...new Set(revisingStatements(node).flatMap((statement) => [...statement.stated.topics]))];
}

/** False only where `next` revises nothing in `former`; next to nothing where both were asked for before. */
export function mayConcern(next: MemoryNode, former: MemoryNode): boolean {
  return mayRevise(fingerprintOf(next), fingerprintOf(former));
}

function fingerprintOf(node: MemoryNode): TokenFingerprint {
  const known = fingerprints.get(node) ?? tokenFingerprint(openStatements(node).map((statement) => statement.stated));
  fingerprints.set(node, known);
  return known;
}

/**
 * `former` as it stands after what `next` says: facts that `next` revises are closed, a statement without a fact becomes
 * a closed one, and the node as a whole is past where nothing of it is left. The very same node where nothing is revised.
 * What comes from lower down never revises what comes from further up.
 *
 * @param named  what the writer of `next` says that it revises
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

/** What a node that takes the place of others keeps of what was revised in them. */
export function withRevisionsOf(heir: MemoryNode, formers: readonly MemoryNode[]): MemoryNode {
  const own = formers.filter(({ turns }) => turns.some((turnId) => heir.turns.includes(turnId)));
  const closed = own.flatMap(({ facts }) => facts.filter(isClosed));
  const last = own.at(-1);
  if (closed.length === 0 || last === undefined) return heir;
  const isClosedBy = toldBy(closed);
  const open = heir.facts.filter((fact) => !isClosedBy(`${fact.concept}: ${fact.value}`));
  return closeIfSuperseded({ ...heir, facts: [...open, ...closed] });
}

/** Open again is what was revised only by nodes that are gone. */
export function withoutRevisionsBy(node: MemoryNode, gone: ReadonlySet<string>): MemoryNode {
  const facts = node.facts.map((fact): Fact => {
    if (!gone.has(fact.superseded_by ?? '')) return fact;
    const { valid_to: _, superseded_by: __, ...open } = fact;
    return open;
  });
  if (node.superseded_as === undefined || !gone.has(node.superseded_by ?? '')) return { ...node, facts };
  const { superseded_as: _, ...rest } = node;
  return { ...rest, facts, valid_to: null, superseded_by: null };
}

/** The same but for what memory itself does to it later: what newer nodes revised, where it hangs, its detail. */
export function isSameWork(before: MemoryNode, after: MemoryNode): boolean {
  if (before === after) return true;
  const kept = before.facts.length;
  return isDeepStrictEqual(asWritten(before, kept), asWritten(after, kept)) && after.facts.slice(kept).every(isClosed);
}

function asWritten(node: MemoryNode, facts: number): unknown {
  const { links: _, parent_node_id: __, depth_level: ___, ...rest } = node;
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

/** Past as a whole where nothing that it says is still so. */
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

/**
 * What stays in memory of a node's statements: their words in two bytes each, by hash, in order. A string, since an
 * array of so few numbers takes several times as much.
 */
type TokenFingerprint = string;

/** The word says what a revising statement is about. */
const SUBJECT = 1;
/** The word names what was so before. */
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

/**
 * False only where no statement of `next` revises one of `former`; both need not be taken apart for it. Words of one hash
 * are counted each, so that whatever `revisesStatement` finds is found here.
 */
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

/** Nodes looked at before others get their turn. */
const AT_ONCE = 500;
/** Newest nodes of a project whose statements may be shown to a model, and statements that are. */
const LOOKED_AT = 1_000;
const SHOWN = 40;
const MIN_SHARED_TOPICS = 2;

/** What is no longer so because something newer says otherwise. */
export interface Revisions {
  /**
   * Everything to save for `fresh`: themselves, and each older node whose statements they revise, closed. What newer
   * nodes revise in them is closed in themselves.
   *
   * @param named  for each of `fresh` what its writer says that it revises
   */
  apply(fresh: readonly MemoryNode[], named?: readonly (readonly StatementRef[])[]): Promise<readonly MemoryNode[]>;
  /** Statements of the project that these turns may revise, the likeliest first; of clean origin only. */
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
        if (looked % AT_ONCE === 0) await nextTick();
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
        .slice(0, LOOKED_AT)
        .filter(({ turns: own }) => !own.some((turnId) => turnIds.has(turnId)))
        .flatMap((node) =>
          openFacts(node).flatMap(({ text, origin, fact }) => {
            const shared = topicsOf(text).filter((token) => said.has(token)).length;
            if (shared < MIN_SHARED_TOPICS || !isCleanOrigin(origin)) return [];
            return [{ nodeId: node.node_id, fact, text, date: node.valid_from.slice(0, 10), shared }];
          }),
        )
        .sort((a, b) => b.shared - a.shared)
        .slice(0, SHOWN)
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
