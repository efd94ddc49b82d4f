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

const MAX_RANKED = 200;
const WORDS = ['project', 'kind', 'origin', 'importance'] as const;

/**
 * Best first, ranked as recall ranks; without a query all memories, newest first. Tool results are
 * not ranked: they are listed only for the kind `tool`, by the words of the query. `total` counts all matches.
 */
export async function searchView(services: Pick<EngineServices, 'memory' | 'removals'>, search: Search) {
  const { library, recall } = services.memory;
  const { query, limit, project, kind } = search;
  const hidden = services.removals.hidden();
  const isShown = ({ node_id }: MemoryNode): boolean => !hidden.has(node_id);
  const all = library.list({}).filter(isShown);
  const isWanted = getFilter(search);
  const skips = (node: MemoryNode): boolean => !(isWanted(node) && isShown(node));
  const options = { top: Math.min(limit + 1, MAX_RANKED), skips, ...(project === undefined ? {} : { project }) };
  const results = query.trim() === '' || kind === 'tool' ? null : await recall.search(query, options);
  const listed = kind === 'tool' ? toolNodes(library.list({ all: true }), query) : all;
  const found = results?.map((hit) => ({ node: hit.node, hit })) ?? listed.map((node) => ({ node, hit: null }));
  const hits = found.filter(({ node }) => !skips(node));
  return {
    total: hits.length,
    hits: hits.slice(0, limit).map(({ node, hit }) => hitView(node, hit)),
    projects: [...new Set(all.map((node) => node.project))].sort(),
  };
}

function toolNodes(nodes: readonly MemoryNode[], query: string): readonly MemoryNode[] {
  const words = query.toLowerCase().split(' ');
  const getText = (node: MemoryNode): string => `${getTitle(node)} ${node.summary}`.toLowerCase();
  return nodes.filter((node) => node.kind === 'tool' && words.every((word) => getText(node).includes(word)));
}

function getFilter({ sinceMs, quarantine, ...search }: Search) {
  return (node: MemoryNode): boolean =>
    WORDS.every((key) => search[key] === undefined || node[key] === search[key]) &&
    (sinceMs === undefined || Date.parse(node.created_at) >= sinceMs) &&
    (quarantine === undefined || isQuarantined(node) === quarantine);
}

function hitView(node: MemoryNode, hit: RecallHit | null) {
  const { node_id, summary, project, kind, origin, importance, created_at } = node;
  return {
    ...{ node_id, title: getTitle(node), summary, project, kind, origin, importance, created_at },
    pinned: (node.pinned_from ?? node.pinned_in) !== undefined,
    quarantined: isQuarantined(node),
    score: hit?.score ?? 0,
    /** Below the relevance filter: recall would not insert it. */
    ...(hit?.isFar === true ? { isFar: true } : {}),
    lanes: hit?.lanes ?? {},
    /** The line that answers, else how it was found; '' without a query. */
    why: hit === null ? '' : (hit.raw?.text ?? lanesText(hit.lanes)),
  };
}
