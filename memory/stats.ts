import { isCleanOrigin } from '../common/turn.ts';
import type { MemoryDeps } from './deps.ts';
import type { Texts } from './ingest/turn-reader.ts';
import type { TurnBook } from './ingest/turn-registry.ts';
import { isStandIn } from './model/draft-node.ts';
import type { MemoryNode } from './model/node.ts';
import { contentTags } from './model/system-tags.ts';
import { isClosed, isPast } from './model/validity.ts';
import type { TurnText } from './models/language-model.ts';
import type { Catalogue } from './storage/node-registry.ts';
import type { Store } from './storage/node-store.ts';
import type { Memory } from './types/memory.ts';
import type { NodeReason } from './types/views.ts';

const TAGS = 20;
const PROMPT_CHARS = 300;

type Parts = Pick<MemoryDeps, 'index' | 'snapshots'> & {
  readonly book: TurnBook;
  readonly catalogue: Catalogue;
  readonly store: Store;
  readonly texts: Texts;
  readonly resolve: (prefix: string) => MemoryNode;
};

/** What memory can say about itself. */
export function createInsight(parts: Parts): Pick<Memory, 'stats' | 'why'> {
  const { book, catalogue, index, resolve, snapshots, store, texts } = parts;
  return {
    async stats() {
      const nodes = catalogue.all();
      const sessions = [...book.sessions().values()];
      const tags = Object.entries(countBy(nodes.flatMap((node) => contentTags(node.topic_tags))));
      return {
        nodes: nodes.length,
        pinned: nodes.filter((node) => node.pinned_from !== undefined).length,
        stand_ins: nodes.filter(isStandIn).length,
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
      const sessions = new Set([node.session_id, ...node.turns.flatMap((end) => book.sessionOf(end) ?? [])]);
      const turns = (await Promise.all([...sessions].map(texts.ofSession))).flat();
      const known = new Map(turns.map((turn) => [turn.end, turn]));
      return {
        node_id: node.node_id,
        summary: node.summary,
        origin: node.origin,
        written_by: node.written_by,
        compaction_reason: node.compaction_reason,
        turns: node.turns.map((end) => reasonOf(end, known.get(book.canonical(end)))),
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
