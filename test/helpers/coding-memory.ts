import { Config } from '../../common/config.ts';
import type { MemoryNode } from '../../memory/model/node.ts';
import type { TurnText } from '../../memory/model/turn.ts';
import { createRecaller, type Recaller, type RecallerDeps } from '../../memory/recall/recall.ts';
import type { IndexRow, SearchIndex } from '../../memory/search/search-index.ts';
import { getRows as indexRows } from '../../memory/storage/index-writer.ts';
import { EPISODES, type Episode } from '../fixtures/coding-history.ts';
import { makeNode } from './nodes.ts';

export const PROJECT = '/home/dev/shop';

export interface CodingMemory {
  readonly recaller: Recaller;
  readonly deps: RecallerDeps;
  readonly nodes: readonly MemoryNode[];
  /** Id of the node made of an episode. */
  getId(name: string): string;
}

/** A made-up history in `index`, one node and its turns for each episode. */
export async function codingMemory(index: SearchIndex, episodes: readonly Episode[] = EPISODES): Promise<CodingMemory> {
  const turns = new Map<string, string>();
  const nodes = episodes.map((episode, at) => {
    const turnIds = episode.turns.map((text, turn) => {
      const turnId = `${episode.name}-${turn}`;
      turns.set(turnId, text);
      return turnId;
    });
    return makeNode({
      node_id: `mem_20260301_101500_${at.toString(16).padStart(6, '0')}`,
      session_id: `s-${Math.floor(at / 8)}`,
      summary: episode.summary,
      trigger: episode.trigger,
      topic_tags: [...episode.tags],
      turns: turnIds,
    });
  });
  await index.put(nodes.flatMap((node) => rowsOf(node, turns)));
  const deps: RecallerDeps = {
    index,
    getNode: (id) => nodes.find((node) => node.node_id === id) ?? null,
    turnText: (turnId) => ({ text: turns.get(turnId) ?? '', origin: 'assistant' }),
    getProject: (directory) => directory ?? '',
    config: Config.parse({}).recall,
    now: () => Date.UTC(2026, 2, 2),
  };
  const getId = (name: string): string => nodes[episodes.findIndex((episode) => episode.name === name)]?.node_id ?? '';
  return { recaller: createRecaller(deps), deps, nodes, getId };
}

export function rowsOf(node: MemoryNode, said: ReadonlyMap<string, string>): IndexRow[] {
  const turns = node.turns.map((turnId): TurnText => {
    const parts = [{ kind: 'assistant', origin: 'assistant', tool: '', text: said.get(turnId) ?? '' }] as const;
    return { turnId, atMs: Date.parse(node.valid_from), origin: 'assistant', user: '', parts };
  });
  const positions = node.turns.map((turnId, position) => [turnId, { sessionId: node.session_id, position }] as const);
  return indexRows(node, { turns: new Map(turns.map((turn) => [turn.turnId, turn])), positions: new Map(positions) });
}
