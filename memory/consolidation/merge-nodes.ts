import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import { type Author, type Fact, type MemoryNode, redirectTo } from '../model/node.ts';
import { byAge } from './choose-merges.ts';

const TAGS = 8;
const RANK = { HIGH: 0, MED: 1, LOW: 2 } as const;

export interface MergedContent {
  readonly text: MergeText;
  readonly author: Author;
  /** ISO. */
  readonly at: string;
}

/** Returns the keeper with all turns and facts, then the others as redirects that keep their text. */
export function mergedNodes(keeper: MemoryNode, losers: readonly MemoryNode[], making: MergedContent): MemoryNode[] {
  const { text, author, at } = making;
  const all = [keeper, ...losers];
  const turns = distinct(all.toSorted(byStart).flatMap((node) => node.turns));
  const ids = new Set(all.map(({ node_id }) => node_id));
  const whole: MemoryNode = {
    ...keeper,
    summary: text.summary,
    trigger: text.trigger,
    // Describes the former text; rewritten on request.
    detailed_summary: null,
    topic_tags: distinct(all.flatMap((node) => node.topic_tags)).slice(0, Math.max(TAGS, keeper.topic_tags.length)),
    importance: all.map(({ importance }) => importance).sort((a, b) => RANK[a] - RANK[b])[0] ?? keeper.importance,
    facts: distinctFacts(all.flatMap((node) => node.facts)),
    links: distinct(all.flatMap((node) => node.links)).filter((id) => !ids.has(id)),
    source_links: distinct(all.flatMap((node) => node.source_links)),
    capsule: keeper.capsule ?? losers.find(({ capsule }) => capsule !== null)?.capsule ?? null,
    origin: lowestOrigin(all.map(({ origin }) => origin)),
    valid_from: all.map(({ valid_from }) => valid_from).sort()[0] ?? keeper.valid_from,
    turns,
    author,
    status: 'current',
  };
  const pointers = losers.map((loser): MemoryNode => {
    return { ...redirectTo(loser, keeper.node_id, at), superseded_as: 'merged', parent_node_id: null };
  });
  return [whole, ...pointers];
}

/** Returns a group node without turns, then its members. It has their lowest origin and is recalled by search only. */
export function groupNodes(members: readonly MemoryNode[], id: string, making: MergedContent): MemoryNode[] {
  const [oldest, ...younger] = members.toSorted(byAge);
  if (oldest === undefined) return [];
  const all = [oldest, ...younger];
  const counts = new Map<string, number>();
  for (const tag of all.flatMap((node) => distinct(node.topic_tags))) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const common = [...counts].filter(([tag, count]) => !tag.includes(':') && 2 * count >= all.length);
  const parent: MemoryNode = {
    ...oldest,
    node_id: id,
    depth_level: 0,
    recall_mode: 'active',
    topic_tags: common
      .sort(([, a], [, b]) => b - a)
      .map(([tag]) => tag)
      .slice(0, TAGS),
    importance: all.every(({ importance }) => importance === 'LOW') ? 'LOW' : 'MED',
    summary: making.text.summary,
    detailed_summary: null,
    trigger: making.text.trigger,
    links: all.map(({ node_id }) => node_id),
    source_links: [],
    capsule: null,
    origin: lowestOrigin(all.map(({ origin }) => origin)),
    valid_from: all.map(({ valid_from }) => valid_from).sort()[0] ?? oldest.valid_from,
    compaction_reason: 'forced',
    created_at: making.at,
    turns: [],
    kind: 'group',
    author: making.author,
    status: 'current',
    facts: [],
  };
  const { pinned_from: _, ...plain } = parent;
  return [plain, ...all.map((member) => ({ ...member, parent_node_id: id }))];
}

/** Groups do not mix trusted and untrusted nodes. */
export function groupKey({ project, origin }: MemoryNode): string {
  return `${isCleanOrigin(origin) ? 'clean' : 'other'}\n${project}`;
}

function byStart(one: MemoryNode, other: MemoryNode): number {
  return one.valid_from === other.valid_from ? byAge(one, other) : one.valid_from < other.valid_from ? -1 : 1;
}

function distinctFacts(facts: readonly Fact[]): Fact[] {
  const found = new Map<string, Fact>();
  for (const fact of facts) {
    const { concept, value, polarity, valid_to = null, superseded_by = null } = fact;
    const key = JSON.stringify([concept, value, polarity, valid_to, superseded_by]);
    const known = found.get(key);
    found.set(
      key,
      known === undefined ? fact : { ...known, evidence: distinct([...known.evidence, ...fact.evidence]) },
    );
  }
  return [...found.values()];
}

function distinct(items: readonly string[]): string[] {
  return [...new Set(items)];
}

export interface MergeText {
  readonly summary: string;
  readonly trigger: string;
}
