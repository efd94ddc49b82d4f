import type { Catalogue } from './catalogue.ts';
import { isBundled } from './core/merged-node.ts';
import { contentTags } from './core/meta-tags.ts';
import type { MemoryNode } from './core/node.ts';
import { isClosed, isPast } from './core/validity.ts';
import type { MemoryDeps } from './deps.ts';
import type { Memory, ProjectView } from './face.ts';
import type { Queries } from './queries.ts';
import type { TurnBook } from './turn-book.ts';

const NODES = 20;
const FACTS = 50;
const TAGS = 20;
const LEVELS = ['HIGH', 'MED', 'LOW'];

type Parts = Pick<MemoryDeps, 'nodeFiles' | 'projectOf'> & {
  readonly book: TurnBook;
  readonly catalogue: Catalogue;
  readonly queries: Pick<Queries, 'brief' | 'lines'>;
};

/** What is known of a project, the weightiest first. */
export function createAbout({ book, catalogue, nodeFiles, projectOf, queries }: Parts): Memory['about'] {
  /** Of the session that was compacted last. */
  async function lastBrief(project: string): Promise<ProjectView['brief']> {
    const own = (await nodeFiles.briefs()).filter((brief) => brief.project === project);
    const last = own.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at))[0];
    if (last === undefined) return null;
    return { session_id: last.session_id, updated_at: last.updated_at, text: await queries.brief(last.session_id) };
  }

  return async (projectDir) => {
    const project = projectOf(projectDir);
    const nodes = catalogue.all().filter((node) => node.project === project);
    const valid = nodes.filter((node) => !isPast(node));
    const weightiest = valid.filter((node) => !isBundled(node)).toSorted((a, b) => weight(a) - weight(b));
    const facts = factsOf(valid);
    const sessions = [...book.sessions().values()].filter((session) => session.project === project);
    const shown = weightiest.slice(0, NODES).map((node) => node.node_id);
    return {
      project,
      counts: {
        sessions: sessions.length,
        turns: sessions.reduce((sum, session) => sum + session.turns, 0),
        nodes: nodes.length,
        facts: facts.length,
      },
      brief: await lastBrief(project),
      nodes: queries.lines(shown).map(({ nodeId, origin, text }) => ({
        node_id: nodeId,
        importance: catalogue.current(nodeId)?.importance ?? 'LOW',
        origin,
        text,
      })),
      tags: tagsOf(nodes).slice(0, TAGS),
      facts: facts.slice(0, FACTS),
    };
  };
}

/** Pinned first, then by importance; the newest first among equals, as the catalogue has them. */
function weight(node: MemoryNode): number {
  return node.pinned_from === undefined ? LEVELS.indexOf(node.importance) : -1;
}

/** Each statement once, the newest first. */
function factsOf(nodes: readonly MemoryNode[]): ProjectView['facts'] {
  const found = new Map<string, ProjectView['facts'][number]>();
  for (const { node_id, origin, facts } of nodes) {
    for (const { concept, value, polarity } of facts.filter((fact) => !isClosed(fact))) {
      const key = JSON.stringify([concept, value, polarity]);
      if (!found.has(key)) found.set(key, { concept, value, polarity, origin, node_id });
    }
  }
  return [...found.values()];
}

function tagsOf(nodes: readonly MemoryNode[]): ProjectView['tags'] {
  const counts = new Map<string, number>();
  for (const tag of nodes.flatMap((node) => contentTags(node.topic_tags))) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts]
    .map(([tag, count]) => ({ tag, nodes: count }))
    .sort((a, b) => b.nodes - a.nodes || a.tag.localeCompare(b.tag));
}
