import { createHash } from 'node:crypto';
import type { CapturedTurn, Origin } from '../../common/turn.ts';
import type { MemorySource } from '../../proxy/ports.ts';

export interface FakeMemory extends MemorySource {
  readonly captured: Map<string, CapturedTurn>;
}

/** A node for every captured turn at once, and a recall that depends on nothing but the prompt. */
export function createFakeMemory(options: { readonly durable?: (turnId: string) => boolean } = {}): FakeMemory {
  const captured = new Map<string, CapturedTurn>();
  const isDurable = options.durable ?? (() => true);
  const getNode = (turnId: string): string => `mem_20261101_000000_${turnId.slice(0, 6)}`;
  const line = (nodeId: string, text: string, origin: Origin) => ({ nodeId, text: `- [${nodeId}] ${text}`, origin });
  return {
    captured,
    captureTurns(turns) {
      for (const turn of turns) if (turn.subagent === undefined) captured.set(turn.turnId, turn);
    },
    awaitCaptures: async () => {},
    nodesCovering: (turnIds) =>
      new Map(
        turnIds
          .filter((turnId) => captured.has(turnId) && isDurable(turnId))
          .map((turnId) => [turnId, [getNode(turnId)]]),
      ),
    prepareNodes() {},
    lines: (ids) =>
      ids.map((id) => ({
        ...line(id, 'what was said in that turn, in one line', 'assistant'),
        kept: { decisions: [`- [${id}] decided (user): keep it`], open: [], values: [`value-of-${id}`] },
      })),
    // Some turns have no quote.
    quotes: async (turnIds) =>
      new Map(turnIds.filter((id) => id < 'c').map((id) => [id, `- [${getNode(id)}] asked: “that turn”`])),
    sessionContext: async () => ({
      brief: ['## Active Work Context', '- the client gets a retry'],
      lines: [line('mem_20261101_000000_aaaaaa', 'the port is 8471', 'user')],
    }),
    factChanges: async () => [],
    async recall({ prompt, shown }) {
      const digest = createHash('sha256').update(prompt).digest();
      const origins: Origin[] = ['user', 'external', 'tool', 'assistant'];
      const count = (digest[0] as number) % 3;
      const hits = Array.from({ length: count }, (_, at) => {
        const origin = origins[(digest[at + 1] as number) % 4] as Origin;
        return {
          line: line(`mem_20261101_000000_b0000${at}`, `${origin} said ${digest.toString('hex', 0, 4)}`, origin),
          score: 1,
        };
      });
      return hits.filter((hit) => !shown.has(hit.line.text));
    },
  };
}
