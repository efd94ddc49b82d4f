import { LruMap, tally } from '../../common/map.ts';
import { compareText } from '../../common/text.ts';
import { idTail } from '../model/markdown.ts';
import { followRedirects, isRedirect, type MemoryNode } from '../model/node.ts';
import { isCall } from '../text/actions.ts';
import { contentTags } from '../text/tags.ts';

const TAGS = 60;
const isShort = (prefix: string): boolean => /^[0-9a-f]{4,6}$/.test(prefix);

export type NodeRegistry = ReturnType<typeof createNodeRegistry>;

/** Every node, in memory; what the disk holds is the truth, this is its mirror. */
export function createNodeRegistry() {
  const nodes = new Map<string, MemoryNode>();
  const covering = createTurnIndex();
  const bySession = new Map<string, number>();
  let sorted: readonly MemoryNode[] | null = null;
  let revision = 0;
  /** By project, until something changes. */
  const tags = new LruMap<string, readonly string[]>(Number.POSITIVE_INFINITY);

  function markChanged(): void {
    sorted = null;
    revision += 1;
    tags.clear();
  }

  function count(sessionId: string, more: number): void {
    const left = (bySession.get(sessionId) ?? 0) + more;
    if (left === 0) bySession.delete(sessionId);
    else bySession.set(sessionId, left);
  }

  function forget(id: string): void {
    const node = nodes.get(id);
    if (node === undefined) return;
    count(node.session_id, -1);
    covering.remove(node);
    nodes.delete(id);
  }

  const current = (id: string): MemoryNode | undefined => followRedirects(id, nodes);

  function all(): readonly MemoryNode[] {
    sorted ??= [...nodes.values()]
      .filter((node) => !isRedirect(node) && !isCall(node))
      .sort((a, b) => compareText(b.created_at, a.created_at) || compareText(b.valid_from, a.valid_from));
    return sorted;
  }

  return {
    put(fresh: readonly MemoryNode[]): void {
      if (fresh.length > 0) markChanged();
      for (const node of fresh) {
        forget(node.node_id);
        nodes.set(node.node_id, node);
        count(node.session_id, 1);
        if (!isRedirect(node)) covering.add(node);
      }
    },
    remove(ids: readonly string[]): void {
      if (ids.length > 0) markChanged();
      for (const id of ids) forget(id);
    },
    /** The node, or the one that took its place. */
    current,
    /** Exactly this node, pointers included. */
    get: (id: string): MemoryNode | undefined => nodes.get(id),
    /** Ids that begin with this, or whose last six characters do, pointers included. */
    matching: (prefix: string): readonly string[] =>
      nodes.has(prefix)
        ? [prefix]
        : [...nodes.keys()].filter((id) => id.startsWith(prefix) || (isShort(prefix) && idTail(id).startsWith(prefix))),
    /** Rounds and calls of the turns that a node stands for, in order. */
    getChildren: (id: string): readonly MemoryNode[] =>
      [...nodes.values()].filter(
        ({ kind, parent_node_id: parent }) => kind === 'tool' && parent !== null && current(parent)?.node_id === id,
      ),
    pointersTo: (id: string): readonly MemoryNode[] =>
      [...nodes.values()].filter((node) => isRedirect(node) && current(node.node_id)?.node_id === id),
    nodesCovering: covering.of,
    /** Pointers included, in no order. */
    every: (): readonly MemoryNode[] => [...nodes.values()],
    /** Without pointers and calls, newest first. */
    all,
    /** How many nodes a session has, pointers and calls included. */
    getSize: (sessionId: string): number => bySession.get(sessionId) ?? 0,
    /** Tags of a project, most used first. */
    tags: (project: string): readonly string[] =>
      tags.getOrCreate(project, () => {
        const own = all().filter((node) => node.project === project);
        const used = [...tally(own.flatMap((node) => contentTags(node.topic_tags)))].sort((a, b) => b[1] - a[1]);
        return used.slice(0, TAGS).map(([tag]) => tag);
      }),
    size: (): number => all().length,
    revision: (): number => revision,
  };
}

function createTurnIndex() {
  /** Most turns have one node: a list of one takes five times as much. */
  const byTurn = new Map<string, string | readonly string[]>();

  function of(turnId: string): readonly string[] {
    const ids = byTurn.get(turnId) ?? [];
    return typeof ids === 'string' ? [ids] : ids;
  }

  function set(turnId: string, ids: readonly string[]): void {
    const [first, second] = ids;
    if (first === undefined) byTurn.delete(turnId);
    else byTurn.set(turnId, second === undefined ? first : ids);
  }

  return {
    of,
    add(node: MemoryNode): void {
      for (const turnId of new Set(node.turns)) set(turnId, [...of(turnId), node.node_id]);
    },
    remove({ node_id, turns }: MemoryNode): void {
      for (const turnId of turns) {
        const others = of(turnId).filter((id) => id !== node_id);
        set(turnId, others);
      }
    },
  };
}
