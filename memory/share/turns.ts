import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { grouped } from '../../common/map.ts';
import { redactTurn } from '../ingest/redact-turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { JournalTurn } from '../model/turn.ts';
import { parseTurn, renderTurn } from '../model/turn-schema.ts';
import { NO_ROW, type ShareContext } from './parts.ts';
import { MAX_PAYLOAD_CHARS, type TurnPayload } from './row.ts';

/** Of a turn as text: a row that unpacks to more is refused. */
const MAX_TURN_BYTES = 32 * 1024 * 1024;
/** Packed characters that are signed before they are sent. */
const CHUNK_CHARS = 4 * 1024 * 1024;

/** A verbatim turn, below a memory that stands for it. */
export interface LeavingTurn {
  readonly turnId: string;
  readonly nodeId: string;
  /** Null where it stays. */
  readonly payload: TurnPayload | null;
}

/** Null for what is not gzip and base64 of the stored form. */
export async function unpack({ turn }: TurnPayload): Promise<JournalTurn | null> {
  const unpacking = promisify(gunzip)(Buffer.from(turn, 'base64'), { maxOutputLength: MAX_TURN_BYTES });
  const bytes = await unpacking.catch(() => null);
  return bytes === null ? null : parseTurn(bytes.toString('utf8'));
}

/** Published nodes with turns that have not left yet, by session. */
export function withUnsentTurns({ memory, rules, state }: ShareContext): ReadonlyMap<string, readonly MemoryNode[]> {
  const { known, turns } = state();
  if (!rules.raw) return new Map();
  const isPublished = ({ node_id }: MemoryNode): boolean => (known[node_id]?.digest ?? '') !== '';
  const unsent = memory.nodes().filter((node) => isPublished(node) && node.turns.some((id) => !(id in turns)));
  return grouped(unsent, ({ session_id }) => session_id);
}

/** Turns of the next sessions, up to some megabytes; empty when all have left. */
export async function nextTurns(context: ShareContext): Promise<LeavingTurn[]> {
  const { memory, redactor, rules, signal, state } = context;
  const { known, turns } = state();
  const leaving: LeavingTurn[] = [];
  let chars = 0;
  for (const [sessionId, nodes] of withUnsentTurns(context)) {
    const held = new Map((await memory.getTurns(sessionId)).map((each) => [each.turn.turnId, each]));
    for (const { turn, nodeIds } of held.values()) {
      signal.throwIfAborted();
      const nodeId = nodeIds.find((id) => (known[id]?.digest ?? '') !== '');
      if (turn.turnId in turns || nodeId === undefined) continue;
      const clean = { ...turn, ...(await redactTurn(turn, redactor)), project: rules.getKey(turn.project) };
      const text = renderTurn({ ...clean, redacted: turn.redacted || clean.redacted, projectDir: null });
      const packed = (await promisify(gzip)(text)).toString('base64');
      const isLarge = packed.length > MAX_PAYLOAD_CHARS / 2;
      leaving.push({ turnId: turn.turnId, nodeId, payload: isLarge ? null : { kind: 'turn', nodeId, turn: packed } });
      chars += isLarge ? 0 : packed.length;
      if (chars > CHUNK_CHARS) return leaving;
    }
    // What the journal does not have is not looked for again.
    for (const { node_id: nodeId, turns: ids } of nodes)
      for (const turnId of ids) if (!held.has(turnId)) leaving.push({ turnId, nodeId, payload: null });
  }
  return leaving;
}

/** Rows of turns that were removed, or whose memory was, and what is known of the others. */
export function withoutGone({ memory, rules, state }: ShareContext, removedIds: ReadonlySet<string>) {
  const entries = Object.entries(state().turns);
  const isGone = ([turnId, { sequence, nodeId }]: (typeof entries)[number]): boolean =>
    removedIds.has(nodeId) || memory.isForgotten(turnId) || (!rules.raw && sequence !== NO_ROW);
  const leaving = entries.filter(isGone);
  const rows = leaving.map(([, { sequence }]) => sequence).filter((sequence) => sequence !== NO_ROW);
  const turns = leaving.length === 0 ? state().turns : Object.fromEntries(entries.filter((each) => !isGone(each)));
  return { rows, turns };
}
