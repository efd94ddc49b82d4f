import { isCleanOrigin, type Origin } from '../common/turn.ts';
import type { TurnReader } from './ingest/turn-reader.ts';
import type { TurnRegistry } from './ingest/turn-registry.ts';
import type { MemoryNode } from './model/node.ts';
import type { TurnText } from './model/turn.ts';
import { writtenBy } from './node-view.ts';
import type { NodeRegistry } from './storage/node-registry.ts';
import { isClosed, isPast } from './text/validity.ts';

/** Where a node comes from. */
export interface NodeReason {
  readonly node_id: string;
  readonly summary: string;
  readonly origin: Origin;
  readonly written_by: string;
  readonly compaction_reason: string;
  readonly turns: readonly {
    readonly turn: string;
    /** Null where its raw text is not kept. */
    readonly at: string | null;
    readonly origin: Origin | null;
    readonly prompt: string;
    /** Tools whose results lowered the origin. */
    readonly tools: readonly string[];
  }[];
  /** Current facts, and the turns that each rests on. */
  readonly facts: readonly {
    readonly concept: string;
    readonly value: string;
    readonly polarity: 'positive' | 'negative';
    readonly origin: Origin;
    readonly turns: readonly string[];
  }[];
  /** Former ids of the node. */
  readonly aliases: readonly string[];
  /** Superseded statements; the whole node where `statement` is null. */
  readonly replaced: readonly {
    readonly statement: string | null;
    readonly valid_to: string | null;
    readonly by: string | null;
  }[];
  /** Nodes of which it superseded a statement. */
  readonly replaces: readonly string[];
}

const PROMPT_CHARS = 300;

interface Parts {
  readonly turnRegistry: TurnRegistry;
  readonly catalogue: NodeRegistry;
  readonly turnReader: TurnReader;
}

export async function explainNode(
  node: MemoryNode,
  { turnRegistry, catalogue, turnReader }: Parts,
): Promise<NodeReason> {
  const sessions = new Set([node.session_id, ...node.turns.flatMap((turnId) => turnRegistry.sessionOf(turnId) ?? [])]);
  const turns = (await Promise.all([...sessions].map(turnReader.ofSession))).flat();
  const known = new Map(turns.map((turn) => [turn.turnId, turn]));
  return {
    node_id: node.node_id,
    summary: node.summary,
    origin: node.origin,
    written_by: writtenBy(node),
    compaction_reason: node.compaction_reason,
    turns: node.turns.map((turnId) => reasonOf(turnId, known.get(turnRegistry.canonicalId(turnId)))),
    facts: node.facts
      .filter((fact) => !isClosed(fact))
      .map(({ concept, value, polarity, evidence, origin }) => {
        return { concept, value, polarity, origin: origin ?? node.origin, turns: evidence };
      }),
    aliases: catalogue.pointersTo(node.node_id).map((each) => each.node_id),
    replaced: replacedIn(node),
    replaces: catalogue.all().flatMap((each) => (isRevisedBy(each, node.node_id) ? [each.node_id] : [])),
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
