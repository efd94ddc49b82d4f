import { setImmediate as nextTurn } from 'node:timers/promises';
import { grouped } from '../common/map.ts';
import { joinParts } from './ingest/join-parts.ts';
import { readTurn } from './ingest/turn-trust.ts';
import type { MemoryParts } from './parts.ts';
import type { SharedMemory } from './share/parts.ts';

/** Verbatim turns, as far as sharing reads and adds them. */
export function createSharedTurns(parts: MemoryParts): Pick<SharedMemory, 'getTurns' | 'saveTurns' | 'isForgotten'> {
  const { catalogue, indexer, journal, removal, toolRounds, turnReader, turnRegistry } = parts;

  function getNodes(turnId: string): string[] {
    const names = turnRegistry
      .aliases(turnId)
      .flatMap((form) => [
        form,
        ...turnRegistry.getWholes(form).map((whole) => turnRegistry.canonicalId(whole.turnId)),
      ]);
    return [...new Set(names.flatMap((name) => catalogue.nodesCovering(name)))];
  }

  /** As at a start, when the session is read. */
  async function register(sessionId: string): Promise<void> {
    const records = await journal.read(sessionId);
    for (const part of records)
      if (part.part !== undefined && !turnRegistry.isRecorded(part.turnId)) toolRounds.restore(part);
    for (const turn of joinParts(records, turnRegistry.canonicalId).turns) {
      if (turn.part !== undefined || turnRegistry.isRecorded(turn.turnId)) continue;
      const text = readTurn(turn);
      turnRegistry.record(turn, text);
      turnReader.keep(text);
      await nextTurn();
    }
  }

  return {
    async getTurns(sessionId) {
      const turns = (await journal.read(sessionId)).filter(({ turnId }) => !removal.isGone(turnId));
      return turns.map((turn) => ({ turn, nodeIds: getNodes(turn.turnId) }));
    },
    async saveTurns(turns) {
      const isFresh = ({ turnId }: { readonly turnId: string }): boolean =>
        !turnRegistry.isRecorded(turnId) && !removal.isGone(turnId);
      for (const [sessionId, own] of grouped(turns.filter(isFresh), (turn) => turn.sessionId)) {
        await Promise.all(own.map((turn) => journal.append(turn)));
        await register(sessionId);
      }
      const ids = [...new Set(turns.flatMap(({ turnId }) => getNodes(turnId)))];
      await indexer.remove(ids);
      indexer.upsert(ids.flatMap((id) => catalogue.get(id) ?? []));
    },
    isForgotten: removal.isForgotten,
  };
}
