import { expect, test } from 'vitest';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { talk } from '../../../helpers/turns.ts';

const SESSIONS = 230;
const said = (session: number, nth: number) =>
  talk(`In session ${session} the port of service ${nth} is ${2_000 + session}.`, `Noted for ${session}, ${nth}.`, {
    sessionId: `s${session}`,
    atMs: 1_800_000_000_000 + (nth * SESSIONS + session) * 1_000,
  });

test.each(['off', 'local'] as const)(
  'more sessions than are held in memory lose no turn and get no node twice: llm %s',
  async (llm) => {
    const disk = createDisk();
    const memory = await openRig(disk, { llm, idleMs: 0 });
    const all = Array.from({ length: SESSIONS }, (_, session) => session);
    for (const nth of [0, 1]) {
      for (const session of all) {
        memory.capture.captureTurns([said(session, nth)]);
        if (session % 20 === 0) await memory.library.listSessions({});
      }
      // Turns that were put away are read again where they are to be cut.
      if (nth === 0) memory.capture.prepareNodes('s0', [said(0, 0).turnId]);
    }
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const turnIds = all.flatMap((session) => [said(session, 0).turnId, said(session, 1).turnId]);
    const standing = memory.recall.nodesCovering(turnIds);
    expect(standing.size).toBe(2 * SESSIONS);
    expect([...standing.values()].filter((ids) => ids.length !== 1)).toEqual([]);
    for (const session of [0, 1, 100, SESSIONS - 1]) {
      expect(await disk.journal.read(`s${session}`)).toHaveLength(2);
      expect((await memory.library.showSession(`s${session}`)).turns).toBe(2);
    }
    await memory.maintenance.close();
  },
  60_000,
);
