import type { Compactor } from './compaction/compactor.ts';
import type { ModelUpgrades } from './compaction/model-upgrades.ts';
import type { ToolRounds } from './compaction/tool-rounds.ts';
import type { TurnReader } from './ingest/turn-reader.ts';
import type { TurnRegistry } from './ingest/turn-registry.ts';
import { isBundled, type MemoryNode } from './model/node.ts';
import { isNodeFrom, isTurnFrom, type Source } from './model/source-filter.ts';
import type { TurnText } from './model/turn.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import type { Journal } from './storage/turn-log.ts';
import { grouped } from './text/group-by.ts';

/** Selects turns and nodes: all given conditions must hold, and at least one is given. */
export interface ForgetRequest {
  /** Reports what would be removed, and removes nothing. */
  readonly dryRun: boolean;
  /** Content of this source entered the turn; see `Source`. */
  readonly source?: Source;
  readonly sessionId?: string;
  /** Only turns of that time or later. */
  readonly sinceMs?: number;
}

export interface ForgetReport {
  readonly dry_run: boolean;
  readonly turns: number;
  readonly sessions: readonly string[];
  readonly nodes: readonly { readonly node_id: string; readonly summary: string }[];
  /** Nodes rebuilt from remaining turns that shared a node with removed ones. */
  readonly remade: number;
}

type Parts = {
  readonly journal: Journal;
  readonly turnRegistry: TurnRegistry;
  readonly catalogue: NodeRegistry;
  readonly compactor: Compactor;
  readonly toolRounds: ToolRounds;
  readonly turnReader: TurnReader;
  readonly modelUpgrades: ModelUpgrades;
  /** Compacts all waiting turns. */
  readonly compactTails: () => Promise<void>;
  /** See `Removal.remove`. */
  readonly remove: (nodes: readonly MemoryNode[], turnIds: readonly string[]) => Promise<void>;
};

type What = Pick<ForgetRequest, 'source' | 'sessionId' | 'sinceMs'>;

/**
 * Removes turns of a session, since a time, or with content of a source. A node is removed with any of its turns; first
 * a new node is built from its other turns, so that nothing else is lost.
 */
export function createForgetting(parts: Parts): (request: ForgetRequest) => Promise<ForgetReport> {
  const { turnRegistry, catalogue, compactor, journal, toolRounds, turnReader, modelUpgrades, compactTails, remove } =
    parts;

  async function turnsOf(what: What): Promise<TurnText[]> {
    const { source, sessionId, sinceMs } = what;
    const ids = sessionId === undefined ? (await journal.sessions()).map((each) => each.sessionId) : [sessionId];
    const found: TurnText[] = [];
    for (const id of ids) {
      for (const turn of await turnReader.ofSession(id)) {
        if (sinceMs !== undefined && turn.atMs < sinceMs) continue;
        if (source === undefined || isTurnFrom(turn, source)) found.push(turn);
      }
    }
    return found;
  }

  function fits(node: MemoryNode, { source, sessionId, sinceMs }: What): boolean {
    if (sessionId !== undefined && node.session_id !== sessionId) return false;
    if (sinceMs !== undefined && Date.parse(node.valid_from) < sinceMs) return false;
    return source === undefined || isNodeFrom(node, source);
  }

  /** Ids of whole turns, or of a part whose turn still runs. */
  function namesOf(turns: readonly TurnText[]): Set<string> {
    return new Set(
      turns.flatMap(({ turnId }) => {
        const wholes = turnRegistry.wholesOf(turnId).map((whole) => turnRegistry.canonicalId(whole.turnId));
        return wholes.length > 0 ? wholes : [turnId];
      }),
    );
  }

  async function remake(nodes: readonly MemoryNode[], gone: ReadonlySet<string>): Promise<number> {
    const stays = new Set(nodes.flatMap((node) => node.turns).map(turnRegistry.canonicalId));
    for (const turnId of gone) stays.delete(turnId);
    const bySession = grouped([...stays], (turnId) => turnRegistry.sessionOf(turnId) ?? '');
    let made = 0;
    for (const [sessionId, turnIds] of bySession) {
      const turns = (await turnReader.ofSession(sessionId)).filter(({ turnId }) => turnIds.includes(turnId));
      const project = turnRegistry.session(sessionId)?.project ?? '';
      if (turns.length === 0) continue;
      const batch = { sessionId, project, reason: 'forced', turns } as const;
      const { nodes: fresh } = await compactor.draftNodes([batch], (nodes) => toolRounds.childrenOf(nodes, turns));
      modelUpgrades.add(fresh);
      made += fresh.length;
    }
    return made;
  }

  return async ({ dryRun, ...what }) => {
    if (!dryRun) await compactTails();
    const turnIds = namesOf(await turnsOf(what));
    const isHit = (node: MemoryNode): boolean =>
      node.turns.some((turnId) => turnIds.has(turnRegistry.canonicalId(turnId)));
    const nodes = catalogue.all().filter((node) => isHit(node) || fits(node, what));
    for (const node of nodes)
      if (!isHit(node)) for (const turnId of node.turns) turnIds.add(turnRegistry.canonicalId(turnId));
    const sessions = new Set([...turnIds].flatMap((turnId) => turnRegistry.sessionOf(turnId) ?? []));
    for (const { session_id } of nodes) sessions.add(session_id);
    const remade = dryRun ? 0 : await remake(nodes, turnIds);
    if (!dryRun && nodes.length + turnIds.size > 0) await remove(nodes, [...turnIds]);
    return {
      dry_run: dryRun,
      turns: turnIds.size,
      sessions: [...sessions].sort(),
      nodes: nodes.filter((node) => !isBundled(node)).map(({ node_id, summary }) => ({ node_id, summary })),
      remade,
    };
  };
}
