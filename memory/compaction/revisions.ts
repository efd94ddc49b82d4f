import { setImmediate as nextTick } from 'node:timers/promises';
import { isCleanOrigin } from '../../common/turn.ts';
import type { StatementRef } from '../model/claim.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { isPast } from '../model/validity.ts';
import type { KnownStatement } from '../models/language-model.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { topicTokens } from '../text/keywords.ts';
import { closeSuperseded, mayConcern, openFacts, revisingTopics } from './supersede.ts';
import { topicsOf } from './supersession-patterns.ts';

/** Nodes looked at before others get their turn. */
const AT_ONCE = 500;
/** Newest nodes of a project whose statements may be shown to a model, and statements that are. */
const LOOKED_AT = 1_000;
const SHOWN = 40;
const LEAST_SHARED = 2;

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
            if (shared < LEAST_SHARED || !isCleanOrigin(origin)) return [];
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
