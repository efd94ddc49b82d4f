import { mkdir, readdir, readFile, rename, rmdir, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Problem } from '../../../../common/errors.ts';
import { encodeFrame, readFrames } from '../../../../memory/storage/fs/log-file.ts';
import { openJournal } from '../../../../memory/storage/fs/turn-log.ts';
import { sessionStem } from '../../../../memory/storage/paths.ts';
import type { Journal } from '../../../../memory/storage/turn-log.ts';
import { journalContract, turn } from '../../../contract/turn-log.ts';
import { createMemoryJournal } from '../../../helpers/memory-turn-log.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

async function open(dir: string): Promise<{ journal: Journal; problems: Problem[] }> {
  const problems: Problem[] = [];
  return { journal: await openJournal({ dir, report: (problem) => problems.push(problem) }), problems };
}

async function threeTurns(dir: string): Promise<{ file: string; bytes: Buffer }> {
  const { journal } = await open(dir);
  for (const turnId of ['a', 'b', 'c']) await journal.append(turn('s-1', turnId));
  await journal.close();
  const file = path.join(dir, 's-1.log');
  return { file, bytes: await readFile(file) };
}

const getEnds = async (journal: Journal): Promise<string[]> => (await journal.read('s-1')).map(({ turnId }) => turnId);

describe('the journal on disk', () => {
  journalContract(async () => (await open(path.join(await tempDir(), 'journal'))).journal);

  test('survives a reopening, and numbering continues', async () => {
    const dir = await tempDir();
    await threeTurns(dir);
    const { journal, problems } = await open(dir);
    expect((await journal.append(turn('s-1', 'd'))).seq).toBe(3);
    expect(await getEnds(journal)).toEqual(['a', 'b', 'c', 'd']);
    expect(problems).toEqual([]);
  });

  test('stores turn ids under `end`, as every version did, and reads them back', async () => {
    const dir = await tempDir();
    const { journal } = await open(dir);
    const record = await journal.append({ ...turn('s-1', 'whole'), parts: [{ turnId: 'part', messages: 1 }] });
    await journal.close();
    const { payloads } = readFrames(await readFile(path.join(dir, 's-1.log')));
    const { turnId: _, ...rest } = record;
    expect(JSON.parse(String(payloads[0]))).toEqual({ ...rest, end: 'whole', parts: [{ end: 'part', messages: 1 }] });
    expect(await (await open(dir)).journal.read('s-1')).toEqual([record]);
  });

  test('is readable by its owner alone', async () => {
    const dir = path.join(await tempDir(), 'journal');
    await threeTurns(dir);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    expect((await stat(path.join(dir, 's-1.log'))).mode & 0o777).toBe(0o600);
  });

  test('cut at any offset keeps every whole turn and appends the next one', async () => {
    const dir = await tempDir();
    const { file, bytes } = await threeTurns(dir);
    const { payloads } = readFrames(bytes);
    const edges = payloads.map((_, at) =>
      payloads.slice(0, at + 1).reduce((sum, payload) => sum + payload.length + 8, 0),
    );
    for (let length = 0; length <= bytes.length; length += 1) {
      await writeFile(file, bytes.subarray(0, length));
      const { journal, problems } = await open(dir);
      const whole = edges.filter((edge) => edge <= length).length;
      await journal.append(turn('s-1', 'next'));
      expect(await getEnds(journal)).toEqual([...['a', 'b', 'c'].slice(0, whole), 'next']);
      expect(problems).toHaveLength(length === 0 || edges.includes(length) ? 0 : 1);
      expect((await readdir(dir)).length).toBe(1);
    }
  });

  test('a flipped byte costs at most the turn it lies in, and the file as it was is kept', async () => {
    const dir = await tempDir();
    const { file, bytes } = await threeTurns(dir);
    for (let at = 0; at < bytes.length; at += 7) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] as number) ^ 0x10;
      const inner = path.join(dir, `flip-${at}`);
      await mkdir(inner, { mode: 0o700 });
      await writeFile(path.join(inner, 's-1.log'), flipped, { mode: 0o600 });
      const { journal, problems } = await open(inner);
      const turnIds = await getEnds(journal);
      expect(turnIds.length).toBeGreaterThanOrEqual(2);
      expect(['a', 'b', 'c']).toEqual(expect.arrayContaining(turnIds));
      expect(problems).toHaveLength(1);
      expect(await readFile(path.join(inner, 's-1.log.damaged-1'))).toEqual(flipped);
      expect(await getEnds((await open(inner)).journal)).toEqual(turnIds);
    }
    expect(await readFile(file)).toEqual(bytes);
  });

  test('no bytes at all make it throw', async () => {
    const dir = await tempDir();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), async (noise) => {
        await writeFile(path.join(dir, 's-1.log'), noise);
        const { journal } = await open(dir);
        expect(await getEnds(journal)).toEqual([]);
        await journal.append(turn('s-1', 'a'));
        expect(await getEnds(journal)).toEqual(['a']);
      }),
      { numRuns: 40 },
    );
  });

  test('nothing of a removed turn stays in the directory, quarantined copies included', async () => {
    const dir = await tempDir();
    const { journal } = await open(dir);
    await journal.append(turn('s-1', 'a', 'needle in the hay'));
    await journal.append(turn('s-1', 'b'));
    const file = path.join(dir, 's-1.log');
    await writeFile(file, Buffer.concat([Buffer.from('{"noise":1}'), await readFile(file)]));
    const { journal: again } = await open(dir);
    expect(await getEnds(again)).toEqual(['a', 'b']);
    expect(await readdir(dir)).toHaveLength(2);
    await again.remove('s-1', ['a']);
    const names = await readdir(dir);
    expect(names).toEqual(['s-1.log']);
    expect((await readFile(file)).includes('needle')).toBe(false);
  });

  test('a file of a stranger behind a link is not written to', async () => {
    const dir = await tempDir();
    const elsewhere = path.join(await tempDir(), 'target');
    await writeFile(elsewhere, '');
    await symlink(elsewhere, path.join(dir, 's-1.log'));
    const { journal } = await open(dir);
    await expect(journal.append(turn('s-1', 'a'))).rejects.toMatchObject({ code: 'journal_failed' });
    expect(await readFile(elsewhere, 'utf8')).toBe('');
  });

  test('a write that fails rejects its turn, and the next one is taken once the file can be written', async () => {
    const dir = await tempDir();
    const { journal } = await open(dir);
    await journal.append(turn('s-1', 'a'));
    const file = path.join(dir, 's-1.log');
    await rename(file, `${file}.away`);
    await mkdir(file);
    await expect(journal.append(turn('s-1', 'b'))).rejects.toMatchObject({ code: 'journal_failed' });
    await rmdir(file);
    await rename(`${file}.away`, file);
    await journal.append(turn('s-1', 'c'));
    expect(await getEnds(journal)).toEqual(['a', 'c']);
  });
});

describe('the journal in memory', () => {
  journalContract(async () => createMemoryJournal());
});

test('frames survive any bytes between them', () => {
  const frame = (at: number): Buffer => encodeFrame(Buffer.from(JSON.stringify({ at, pad: '{'.repeat(at) })));
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(9), fc.uint8Array({ minLength: 1, maxLength: 30 }))), (pieces) => {
      const bytes = Buffer.concat(
        pieces.map((piece) => (typeof piece === 'number' ? frame(piece) : Buffer.from(piece))),
      );
      const read = readFrames(bytes).payloads.map((payload) => (JSON.parse(payload.toString()) as { at: number }).at);
      expect(read).toEqual(pieces.filter((piece) => typeof piece === 'number'));
    }),
  );
});

test('file names of sessions are safe everywhere', () => {
  fc.assert(
    fc.property(fc.string(), (id) => {
      expect(sessionStem(id)).toMatch(/^[a-z0-9_-]{1,64}$/);
    }),
  );
  expect(sessionStem('con')).not.toBe('con');
  expect(sessionStem('0b6f3c1e-aaaa')).toBe('0b6f3c1e-aaaa');
});
