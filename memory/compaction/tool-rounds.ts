import type { CapturedTurn } from '../../common/turn.ts';
import { isImported, turnContentHash } from '../ingest/imported-turn.ts';
import { joinParts } from '../ingest/join-parts.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { redactTurn } from '../ingest/redact-turn.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import { readTurn, readTurnPart } from '../ingest/turn-trust.ts';
import { type MemoryNode, redirectTo } from '../model/node.ts';
import type { JournalTurn, TurnText } from '../model/turn.ts';
import type { NodeRegistry } from '../storage/node-registry.ts';
import { callNodes, getActions } from '../text/actions.ts';
import type { Compactor } from './compactor.ts';

type Stamp = Pick<JournalTurn, 'project' | 'files' | 'echoes' | 'repeats'>;

/** State that the next part needs. */
interface PartState {
  readonly sessionId: string;
  readonly project: string;
  /** Beginning of the turn's prompt. */
  readonly prompt: string;
  readonly tainted: boolean;
}

const PROMPT_CHARS = 400;

type Parts = Pick<
  ServiceParts,
  'journal' | 'crashMarks' | 'redactor' | 'turnRegistry' | 'catalogue' | 'store' | 'turnReader'
> & {
  readonly compactor: Compactor;
  /** Removed by the user: never written again. */
  readonly removal: {
    isForgotten(id: string): boolean;
    hasForgotten(): boolean;
    removeRaw(turns: readonly CapturedTurn[]): Promise<void>;
  };
};

/**
 * Stores finished tool rounds (parts) of running turns. Each part is written once; its turn is later written without
 * the parts' messages, and the turn's nodes become parents of the parts' nodes.
 */
export type ToolRounds = ReturnType<typeof createToolRounds>;

export function createToolRounds(parts: Parts) {
  const { journal, crashMarks, redactor, turnRegistry, compactor, store, turnReader, removal } = parts;
  const entered = new Map<string, PartState>();

  function restore(part: JournalTurn): TurnText {
    const before = entered.get(part.part?.after ?? '');
    // Without its predecessor a part counts as tainted.
    const { text, tainted } = readTurnPart(part, before?.tainted ?? (part.part?.after ?? null) !== null);
    const prompt = before?.prompt ?? text.user.slice(0, PROMPT_CHARS);
    turnRegistry.record(part, text);
    const name = turnRegistry.canonicalId(part.turnId);
    turnReader.keep({ ...text, turnId: name });
    const { sessionId, project } = part;
    entered.set(part.turnId, { sessionId, project, prompt, tainted });
    return { ...text, turnId: name };
  }

  async function write(part: CapturedTurn, stamp: Stamp): Promise<TurnText> {
    return restore(await journal.append({ ...(await redactTurn(part, redactor, journal.read)), ...stamp }));
  }

  async function bundle(part: TurnText): Promise<void> {
    const entry = entered.get(part.turnId);
    if (entry === undefined || isCovered(part.turnId)) return;
    const { sessionId, project, prompt } = entry;
    await crashMarks.during('compact', [{ sessionId, turnId: part.turnId, atMs: part.atMs }], () =>
      compactor.bundle({ sessionId, project, reason: 'high_load', turns: [part] }, prompt),
    );
  }

  function isCovered(turnId: string): boolean {
    return turnRegistry.aliases(turnId).some(store.isSettled);
  }

  /** Writes missing parts; empty if the parts belong to another session. */
  async function writtenParts(turn: CapturedTurn, stamp: Stamp): Promise<NonNullable<CapturedTurn['parts']>> {
    const own = turn.parts ?? [];
    const isOwn = (turnId: string): boolean => turnRegistry.getSession(turnId) === turn.sessionId;
    if (!own.some(({ turnId }) => isOwn(turnId))) return [];
    if (own.some(({ turnId }) => turnRegistry.isRecorded(turnId) && !isOwn(turnId))) return [];
    let from = 0;
    for (const [index, { turnId, messages }] of own.entries()) {
      const { parts: _, unfinishedIds: __, ...rest } = turn;
      const part = { index, after: own[index - 1]?.turnId ?? null };
      const missing = !isOwn(turnId) && !removal.isForgotten(turnId);
      if (missing) await write({ ...rest, turnId, messages: turn.messages.slice(from, from + messages), part }, stamp);
      from += messages;
    }
    return own;
  }

  return {
    /** Registers a part read from disk. */
    restore,
    /** Forgets the session's parts; hydration restores them. */
    evict(sessionId: string): void {
      for (const [turnId, known] of entered) if (known.sessionId === sessionId) entered.delete(turnId);
    },
    /** Writes a part and its node. @throws errors of journal and node files */
    async ingest(part: CapturedTurn, stamp: Stamp): Promise<void> {
      await bundle(await write(part, stamp));
    },
    /**
     * Writes a whole turn and returns it with all messages; null where the user removed it under another id.
     * @throws errors of the journal
     */
    async append(turn: CapturedTurn, stamp: Stamp): Promise<JournalTurn | null> {
      const own = await writtenParts(turn, stamp);
      if (own.length === 0) return appendWhole(turn, stamp, parts);
      const held = own.reduce((sum, { messages }) => sum + messages, 0);
      const stored = await journal.append({
        ...(await redactTurn({ ...turn, messages: turn.messages.slice(held) }, redactor, journal.read)),
        ...stamp,
        tail: true,
      });
      const { turns } = joinParts(await journal.read(turn.sessionId), turnRegistry.canonicalId);
      return turns.find(({ turnId }) => turnId === stored.turnId) ?? stored;
    },
    /** Writes nodes for parts that no node or turn covers. */
    async draftNodes(sessionId: string): Promise<void> {
      const own = [...entered].filter(([, known]) => known.sessionId === sessionId).map(([turnId]) => turnId);
      const bare = new Set(own.filter((turnId) => turnRegistry.getWholes(turnId).length === 0 && !isCovered(turnId)));
      if (bare.size === 0) return;
      for (const part of await turnReader.ofSession(sessionId)) if (bare.has(part.turnId)) await bundle(part);
    },
    /** Nodes of the turns' parts or, without parts, nodes for the tool calls. */
    getChildren: (nodes: readonly MemoryNode[], turns: readonly TurnText[]): MemoryNode[] =>
      nodes.flatMap((parent) => childrenOf(parent, turns, parts)),
  };
}

function childrenOf(
  parent: MemoryNode,
  turns: readonly TurnText[],
  { turnRegistry, catalogue, compactor }: Parts,
): MemoryNode[] {
  const below = nodesBelow(parent, turnRegistry, catalogue);
  const replaced = below.filter((node) => isReplaced(node, parent, turnRegistry));
  const pointers = replaced.map((node) => redirectTo(node, parent.node_id, parent.created_at));
  const rounds = below
    .filter((node) => node.kind === 'tool' || isImported(node))
    .map((node) => ({ ...node, parent_node_id: parent.node_id, depth_level: parent.depth_level + 1 }));
  // Subagents are children beside the calls.
  if (rounds.some((round) => !isImported(round))) return [...pointers, ...rounds];
  const own = turns.filter(({ turnId }) => parent.turns.includes(turnId));
  return [...pointers, ...rounds, ...callNodes(parent, getActions(own), compactor.newId)];
}

/** Nodes of the parts and of the unfinished forms of the parent's turns. */
function nodesBelow(parent: MemoryNode, turnRegistry: TurnRegistry, catalogue: NodeRegistry): MemoryNode[] {
  const turnIds = parent.turns
    .flatMap((turnId) => turnRegistry.getParts(turnId))
    .flatMap((turnId) => turnRegistry.aliases(turnId));
  const ids = new Set(turnIds.flatMap((turnId) => catalogue.nodesCovering(turnId)));
  return [...ids].flatMap((id) => (id === parent.node_id ? [] : (catalogue.get(id) ?? [])));
}

/** Whether the node covers only unfinished forms of the parent's turns, and the user did not write or pin it. */
function isReplaced(node: MemoryNode, parent: MemoryNode, turnRegistry: TurnRegistry): boolean {
  const contained = parent.turns.flatMap((turnId) => turnRegistry.getParts(turnId));
  const isOwners = node.author.by === 'user' || node.pinned_from !== undefined;
  return node.kind === 'turn' && !isOwners && node.turns.every((turnId) => contained.includes(turnId));
}

/** Null where the user removed this turn under another id; then it is removed under this one too. */
async function appendWhole(turn: CapturedTurn, stamp: Stamp, { journal, redactor, removal }: Parts) {
  const kept = withoutForgotten(turn, removal.isForgotten);
  const redacted = { ...(await redactTurn(kept, redactor, journal.read)), ...stamp };
  const isRemoved = removal.hasForgotten() && removal.isForgotten(turnContentHash(turn.sessionId, readTurn(redacted)));
  if (!isRemoved) return journal.append(redacted);
  await removal.removeRaw([turn]);
  return null;
}

/** Drops the messages of parts that the user removed. */
function withoutForgotten(turn: CapturedTurn, isForgotten: (turnId: string) => boolean): CapturedTurn {
  const own = turn.parts ?? [];
  if (!own.some(({ turnId }) => isForgotten(turnId))) return turn;
  let from = 0;
  const pieces = own.map(({ turnId, messages }) => {
    from += messages;
    return isForgotten(turnId) ? [] : turn.messages.slice(from - messages, from);
  });
  const parts = own.map(({ turnId }, index) => ({ turnId, messages: pieces[index]?.length ?? 0 }));
  return { ...turn, messages: [...pieces.flat(), ...turn.messages.slice(from)], parts };
}
