import type { Problem } from '../common/errors.ts';
import type { Origin } from '../common/turn.ts';
import { isCleanOrigin } from '../common/turn.ts';
import type { IndexProgress } from './background-tasks.ts';
import type { DeferredUpgrades } from './compaction/model-upgrades.ts';
import type { DreamStatus } from './consolidation/consolidator.ts';
import type { ImportProgress } from './import-document.ts';
import type { Texts } from './ingest/turn-reader.ts';
import type { TurnBook } from './ingest/turn-registry.ts';
import { isDraft } from './model/draft-node.ts';
import type { MemoryNode } from './model/node.ts';
import type { TurnText } from './model/turn.ts';
import { isClosed, isPast } from './model/validity.ts';
import type { NodeIndex } from './search/node-index.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import type { Store } from './storage/node-store.ts';
import type { Snapshots } from './storage/snapshot-files.ts';
import { contentTags } from './text/system-tags.ts';

export interface MemoryStatus {
  readonly queue: { readonly sensor: number; readonly compacter: number; readonly indexer: number };
  readonly llm: DeferredUpgrades & {
    readonly backend: string;
    readonly calls_today: number;
    readonly tokens_today: number;
    /** At the prices of the API, as Claude Code reckons it. */
    readonly cost_usd_today: number;
    /** Why the last model call failed, '' when it did not. */
    readonly last_error: string;
  };
  readonly nodes: number;
  readonly problems: readonly Problem[];
  /** While `reindex` runs, or what the index lacks, or the one of another embedder, is filled. */
  readonly reindex: IndexProgress | null;
  readonly importing: ImportProgress | null;
  /** Null before the first. */
  readonly dream: DreamStatus | null;
}

export interface MemoryStats {
  readonly nodes: number;
  readonly pinned: number;
  readonly stand_ins: number;
  readonly facts: number;
  readonly sessions: number;
  readonly projects: number;
  readonly turns: number;
  readonly oldest: string | null;
  readonly newest: string | null;
  readonly by_importance: Readonly<Record<string, number>>;
  readonly by_recall_mode: Readonly<Record<string, number>>;
  readonly by_origin: Readonly<Record<string, number>>;
  readonly by_writer: Readonly<Record<string, number>>;
  /** Most used first, at most 20. */
  readonly tags: readonly { readonly tag: string; readonly nodes: number }[];
  readonly index: { readonly nodes: number; readonly rows: number };
  readonly snapshots: number;
  readonly problems: number;
}

/** Where a node comes from. */
export interface NodeReason {
  readonly node_id: string;
  readonly summary: string;
  readonly origin: Origin;
  readonly written_by: string;
  readonly compaction_reason: string;
  readonly turns: readonly {
    readonly turn: string;
    /** Null where its raw text is not kept. */
    readonly at: string | null;
    readonly origin: Origin | null;
    readonly prompt: string;
    /** Tools whose results lowered the origin. */
    readonly tools: readonly string[];
  }[];
  /** What it states, and which of its turns each statement rests on. */
  readonly facts: readonly {
    readonly concept: string;
    readonly value: string;
    readonly polarity: 'positive' | 'negative';
    readonly origin: Origin;
    readonly turns: readonly string[];
  }[];
  /** Ids that lead here. */
  readonly aliases: readonly string[];
  /** What of it is no longer so, since when, and by which node; the node as a whole where `statement` is null. */
  readonly replaced: readonly {
    readonly statement: string | null;
    readonly valid_to: string | null;
    readonly by: string | null;
  }[];
  /** Nodes of which it replaced something. */
  readonly replaces: readonly string[];
}

const TAGS = 20;
const PROMPT_CHARS = 300;

type Parts = {
  readonly index: NodeIndex;
  readonly snapshots: Snapshots;
  readonly book: TurnBook;
  readonly catalogue: NodeRegistry;
  readonly store: Store;
  readonly texts: Texts;
  readonly resolve: (prefix: string) => MemoryNode;
};

export interface Insight {
  stats(): Promise<MemoryStats>;
  /** @throws as `show` */
  why(id: string): Promise<NodeReason>;
}

export function createInsight(parts: Parts): Insight {
  const { book, catalogue, index, resolve, snapshots, store, texts } = parts;
  return {
    async stats() {
      const nodes = catalogue.all();
      const sessions = [...book.sessions().values()];
      const tags = Object.entries(countBy(nodes.flatMap((node) => contentTags(node.topic_tags))));
      return {
        nodes: nodes.length,
        pinned: nodes.filter((node) => node.pinned_from !== undefined).length,
        stand_ins: nodes.filter(isDraft).length,
        facts: nodes.reduce((sum, node) => sum + node.facts.length, 0),
        sessions: sessions.length,
        projects: new Set(nodes.map((node) => node.project)).size,
        turns: sessions.reduce((sum, session) => sum + session.turns, 0),
        oldest: nodes.at(-1)?.created_at ?? null,
        newest: nodes[0]?.created_at ?? null,
        by_importance: countBy(nodes.map((node) => node.importance)),
        by_recall_mode: countBy(nodes.map((node) => node.recall_mode)),
        by_origin: countBy(nodes.map((node) => node.origin)),
        by_writer: countBy(nodes.map((node) => node.written_by)),
        tags: tags
          .sort(([a, left], [b, right]) => right - left || a.localeCompare(b))
          .slice(0, TAGS)
          .map(([tag, count]) => ({ tag, nodes: count })),
        index: { nodes: (await index.nodeIds()).size, rows: await index.count() },
        snapshots: (await snapshots.list()).length,
        problems: store.problems().length,
      };
    },
    async why(id) {
      const node = resolve(id);
      const sessions = new Set([node.session_id, ...node.turns.flatMap((turnId) => book.sessionOf(turnId) ?? [])]);
      const turns = (await Promise.all([...sessions].map(texts.ofSession))).flat();
      const known = new Map(turns.map((turn) => [turn.turnId, turn]));
      return {
        node_id: node.node_id,
        summary: node.summary,
        origin: node.origin,
        written_by: node.written_by,
        compaction_reason: node.compaction_reason,
        turns: node.turns.map((turnId) => reasonOf(turnId, known.get(book.canonical(turnId)))),
        facts: node.facts
          .filter((fact) => !isClosed(fact))
          .map(({ concept, value, polarity, evidence, origin }) => {
            return { concept, value, polarity, origin: origin ?? node.origin, turns: evidence };
          }),
        aliases: catalogue.pointersTo(node.node_id).map((each) => each.node_id),
        replaced: replacedIn(node),
        replaces: catalogue.all().flatMap((each) => (isRevisedBy(each, node.node_id) ? [each.node_id] : [])),
      };
    },
  };
}

function replacedIn(node: MemoryNode): NodeReason['replaced'] {
  const whole = isPast(node) ? [{ statement: null, valid_to: node.valid_to, by: node.superseded_by }] : [];
  const parts = node.facts.filter(isClosed).map((fact) => {
    return { statement: fact.value, valid_to: fact.valid_to ?? null, by: fact.superseded_by ?? null };
  });
  return [...whole, ...parts];
}

function isRevisedBy(node: MemoryNode, id: string): boolean {
  return node.node_id !== id && (node.superseded_by === id || node.facts.some((fact) => fact.superseded_by === id));
}

function reasonOf(turn: string, text: TurnText | undefined): NodeReason['turns'][number] {
  if (text === undefined) return { turn, at: null, origin: null, prompt: '', tools: [] };
  const foreign = text.parts.filter((part) => part.kind === 'tool_result' && !isCleanOrigin(part.origin));
  const tools = [...new Set(foreign.map((part) => part.tool))];
  return {
    turn,
    at: new Date(text.atMs).toISOString(),
    origin: text.origin,
    prompt: text.user.slice(0, PROMPT_CHARS),
    tools,
  };
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = Object.create(null) as Record<string, number>;
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
