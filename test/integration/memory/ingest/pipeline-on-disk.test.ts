import { statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import type { Memory } from '../../../../memory/index.ts';
import { openLanceIndex } from '../../../../memory/search/lancedb/search-index.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { createIdSetFile } from '../../../../memory/storage/fs/set-files.ts';
import { openJournal } from '../../../../memory/storage/fs/turn-log.ts';
import { filesHolding } from '../../../helpers/disk-rig.ts';
import { createHashEmbedder } from '../../../helpers/hash-embedder.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const secret = `ghp_${'z9Y8'.repeat(9)}`;
const turns = [
  talk('The staging database listens on port 5433.', 'Noted, src/db.ts uses port 5433.'),
  talk(`From now on always use pnpm, never npm; the token is ${secret}.`, 'Understood: pnpm only.'),
  talk('Payment retries must be capped at 4.', 'payment-client.ts caps retries at 4.'),
];
const turnIds = turns.map((turn) => turn.turnId);

async function openOn(home: string): Promise<Memory> {
  const paths = homePaths(home);
  const report = () => {};
  const embedder = createHashEmbedder();
  const { index } = await openLanceIndex({ dir: paths.indexDir, embedder, now: () => Date.now(), report });
  return openRig(createDisk(), {
    journal: await openJournal({ dir: paths.journalDir, report }),
    nodeFiles: await openNodeFiles(paths),
    forgotten: createIdSetFile(path.join(home, 'memory', 'forgotten')),
    index,
  });
}

describe('memory on a real disk', () => {
  test('survives a restart with nodes, brief, raw turns and search, keeps no secret, and forgets for good', async () => {
    const home = await tempDir();
    const first = await openOn(home);
    first.capture.captureTurns(turns);
    expect(await first.maintenance.flush(60_000)).toBe(true);
    const before = first.recall.nodesCovering(turnIds);
    expect(before.size).toBe(3);
    const brief = await first.library.readBrief('s1');
    await first.maintenance.close();

    const second = await openOn(home);
    expect(second.recall.nodesCovering(turnIds)).toEqual(before);
    expect(await second.library.readBrief('s1')).toBe(brief);
    expect((await second.recall.search('staging database port', { top: 3 }))[0]?.line.text).toContain('5433');
    expect((await second.library.restoreSession('s1'))[0]?.content).toBe('The staging database listens on port 5433.');
    second.capture.captureTurns(turns);
    expect(await second.maintenance.flush(60_000)).toBe(true);
    expect(await second.library.restoreSession('s1')).toHaveLength(6);
    expect(filesHolding(home, secret)).toEqual([]);

    await second.library.remove(second.library.list({}).map((node) => node.node_id));
    await second.maintenance.close();
    expect(filesHolding(path.join(home, 'memory'), '5433')).toEqual([]);
    const third = await openOn(home);
    third.capture.captureTurns(turns);
    expect(await third.maintenance.flush(60_000)).toBe(true);
    expect(third.library.list({})).toEqual([]);
    await third.maintenance.close();
    expect(statSync(path.join(home, 'memory', 'forgotten')).mode & 0o777).toBe(0o600);
  });

  test('finds a quotation that only the turn has, of whichever session', async () => {
    const memory = await openOn(await tempDir());
    const prose = 'The gateway forwards each invoice to the archive. '.repeat(40);
    const long = talk('Explain the archive.', `${prose}Its pet name is the old green heron. ${prose}`);
    const others = Array.from({ length: 30 }, (_, nth) =>
      talk(`Rename the green field ${nth} in the form.`, `Renamed field ${nth}.`, { sessionId: `s${nth + 2}` }),
    );
    memory.capture.captureTurns([long, ...others]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const [found] = await memory.recall.search('"the old  Green heron"', { top: 3 });
    expect(found?.raw).toMatchObject({ text: 'Its pet name is the old green heron.', turn: long.turnId });
    expect(memory.library.list({}).some(({ summary }) => summary.includes('heron'))).toBe(false);
    await memory.maintenance.close();
  });
});
