import { z } from 'zod';
import { getTitle, isQuarantined, type MemoryNode, type RecallHit } from '../../../memory/index.ts';
import { lanesText } from '../render.ts';
import { text as anyText } from '../schema.ts';
import type { EngineServices } from '../service.ts';

const text = anyText.optional();

export const searchInput = z.strictObject({
  query: z.string().max(20_000),
  /** Key of a project, as nodes have it. */
  project: text,
  kind: text,
  origin: text,
  importance: text,
  sinceMs: z.number().optional(),
  quarantine: z.boolean().optional(),
  limit: z.int().positive().max(10_000),
});

type Search = z.infer<typeof searchInput>;

/** Ranked memories that are looked through where a filter may take most of them away. */
const MAX_RANKED = 200;

/** Best first, ranked as recall ranks; without a query all memories, newest first. */
export async function searchView(services: Pick<EngineServices, 'memory' | 'removals'>, search: Search) {
  const { library, recall } = services.memory;
  const { query, limit } = search;
  const hidden = services.removals.hidden();
  const all = library.list({});
  const isWanted = getFilter(search);
  const results = query.trim() === '' ? null : await ranked(recall, search);
  const found = results?.map((hit) => ({ node: hit.node, hit })) ?? all.map((node) => ({ node, hit: null }));
  const hits = found.filter(({ node }) => isWanted(node) && !hidden.has(node.node_id));
  return {
    total: hits.length,
    hits: hits.slice(0, limit).map(({ node, hit }) => hitView(node, hit)),
    projects: [...new Set(all.map(({ project }) => project))].sort(),
  };
}

async function ranked(recall: EngineServices['memory']['recall'], { query, limit, ...filter }: Search) {
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const top = isFiltered ? MAX_RANKED : Math.min(limit, MAX_RANKED);
  return await recall.search(query, { top });
}

function getFilter({ project, kind, origin, importance, sinceMs, quarantine }: Search) {
  return (node: MemoryNode): boolean =>
    (project === undefined || node.project === project) &&
    (kind === undefined || node.kind === kind) &&
    (origin === undefined || node.origin === origin) &&
    (importance === undefined || node.importance === importance) &&
    (sinceMs === undefined || Date.parse(node.created_at) >= sinceMs) &&
    (quarantine === undefined || isQuarantined(node) === quarantine);
}

function hitView(node: MemoryNode, hit: RecallHit | null) {
  const { node_id, summary, project, kind, origin, importance, created_at } = node;
  return {
    ...{ node_id, title: getTitle(node), summary, project, kind, origin, importance, created_at },
    pinned: node.pinned_from !== undefined,
    quarantined: isQuarantined(node),
    score: hit?.score ?? 0,
    /** Below the relevance filter: recall would not insert it. */
    ...(hit?.isFar === true ? { isFar: true } : {}),
    lanes: hit?.lanes ?? {},
    /** The line that answers, else how it was found; '' without a query. */
    why: hit === null ? '' : (hit.raw?.text ?? lanesText(hit.lanes)),
  };
}
