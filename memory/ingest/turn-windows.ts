import type { NodeTexts } from '../compaction/build-nodes.ts';
import type { TurnText } from '../model/turn.ts';

/** Turns with those right before them in their session. */
export interface SessionTurns {
  /** @param texts  of some turns of the session; where they are left out, all of it are read */
  read(sessionId: string, texts?: readonly TurnText[]): Promise<NodeTexts>;
  clear(): void;
}

const SESSIONS = 16;

/** @param textsOf  every turn of a session, oldest first */
export function createSessionTurns(textsOf: (sessionId: string) => Promise<readonly TurnText[]>): SessionTurns {
  const sessions = new Map<string, readonly string[]>();

  function keep(sessionId: string, order: readonly string[]): readonly string[] {
    sessions.delete(sessionId);
    sessions.set(sessionId, order);
    for (const oldest of sessions.keys()) {
      if (sessions.size <= SESSIONS) break;
      sessions.delete(oldest);
    }
    return order;
  }

  async function orderOf(sessionId: string, texts: readonly TurnText[]): Promise<readonly string[]> {
    const held = sessions.get(sessionId);
    const known = new Set(held);
    const fresh = texts.filter(({ turnId }) => !known.has(turnId));
    if (held !== undefined && fresh.length === 0) return held;
    // What follows the last known turn is new; where known ones come after it, the order is another.
    const goesOn = held !== undefined && texts.slice(-fresh.length).every((turn, at) => turn === fresh[at]);
    if (goesOn) return keep(sessionId, [...held, ...fresh.map(({ turnId }) => turnId)]);
    return keep(sessionId, turnIdsOf(await textsOf(sessionId)));
  }

  return {
    async read(sessionId, texts) {
      const turns = texts ?? (await textsOf(sessionId));
      const order = texts === undefined ? keep(sessionId, turnIdsOf(turns)) : await orderOf(sessionId, turns);
      const positions = new Map(order.map((turnId, position) => [turnId, { sessionId, position }]));
      return { turns: new Map(turns.map((turn) => [turn.turnId, turn])), positions };
    },
    clear: () => sessions.clear(),
  };
}

function turnIdsOf(turns: readonly TurnText[]): string[] {
  return turns.map(({ turnId }) => turnId);
}
