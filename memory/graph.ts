import { getTitle, type MemoryNode } from './model/node.ts';
import { fileMarks } from './model/turn.ts';
import { contentTags } from './text/tags.ts';

const MAX_NODES = 10_000;
/** Of them, room for topics and files where there are more memories. */
const MIN_MENTIONS = 1_000;

interface GraphNode {
  readonly id: string;
  readonly kind: 'memory' | 'topic' | 'file';
  readonly title: string;
  readonly project: string;
  /** When it was made, ms; of a file the newest memory about it. */
  readonly at: number;
  readonly importance: 'HIGH' | 'MED' | 'LOW';
}

/** Places of both ends in `nodes`. */
type GraphLink = readonly [from: number, to: number, kind: 'link' | 'part' | 'revision' | 'tag' | 'file'];

/** At most 10,000 nodes: memories first, the newest of them, then topics and files by how many memories name them. */
export function memoryGraph(memories: readonly MemoryNode[]) {
  const isFull = memories.length > MAX_NODES - MIN_MENTIONS;
  const every = isFull ? mentions(memories.slice(0, MAX_NODES)).size : 0;
  const first = memories.slice(0, MAX_NODES - Math.min(every, MIN_MENTIONS));
  const nodes: GraphNode[] = first.map((node) => ({
    ...{ id: node.node_id, kind: 'memory' as const, title: getTitle(node), project: node.project },
    ...{ at: Date.parse(node.created_at), importance: node.importance },
  }));
  const placeByNode = new Map(first.map(({ node_id }, place) => [node_id, place]));
  const links: GraphLink[] = first.flatMap((node, from) => getLinks(node, from, placeByNode));
  const named = [...mentions(first)].sort(([, one], [, other]) => other.from.length - one.from.length);
  const room = named.slice(0, MAX_NODES - nodes.length);
  for (const [id, { kind, title, from }] of room) {
    const newest = first[from[0] as number] as MemoryNode;
    const place = nodes.length;
    nodes.push({ id, kind, title, project: newest.project, at: Date.parse(newest.created_at), importance: 'MED' });
    for (const memory of from) links.push([memory, place, kind === 'topic' ? 'tag' : 'file']);
  }
  return { nodes, links, left_out: memories.length - first.length + named.length - room.length };
}

function getLinks(node: MemoryNode, from: number, placeByNode: ReadonlyMap<string, number>): GraphLink[] {
  const ends: readonly (readonly [id: string | null, kind: GraphLink[2]])[] = [
    ...node.links.map((id) => [id, 'link'] as const),
    [node.parent_node_id, 'part'],
    [node.superseded_by, 'revision'],
  ];
  return ends.flatMap(([id, kind]): GraphLink[] => {
    const to = placeByNode.get(id ?? '');
    return to === undefined || to === from ? [] : [[from, to, kind]];
  });
}

interface Mention {
  readonly kind: 'topic' | 'file';
  readonly title: string;
  /** Places of the memories, the newest first. */
  readonly from: number[];
}

/** What at least two memories name, by an id of its own. */
function mentions(memories: readonly MemoryNode[]): Map<string, Mention> {
  const mentions = new Map<string, Mention>();
  const add = (id: string, kind: Mention['kind'], title: string, place: number): void => {
    const mention = mentions.get(id) ?? { kind, title, from: [] };
    mention.from.push(place);
    mentions.set(id, mention);
  };
  memories.forEach((node, place) => {
    for (const tag of new Set(contentTags(node.topic_tags))) add(`topic:${tag}`, 'topic', tag, place);
    for (const { path } of fileMarks(node.source_links)) add(`file:${node.project}:${path}`, 'file', path, place);
  });
  for (const [id, { from }] of mentions) if (from.length < 2) mentions.delete(id);
  return mentions;
}
