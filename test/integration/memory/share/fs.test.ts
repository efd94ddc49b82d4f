import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createStateFile } from '../../../../memory/share/fs.ts';
import { newState, type ShareState } from '../../../../memory/share/parts.ts';
import type { Row } from '../../../../memory/share/row.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'comet-test-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const getRow = (sequence: number): Row => ({ sequence, payload: `"payload ${sequence}"`, signature: 'x' });
const known = (digest: string) => ({ owner: 'own', version: 1, digest, source: '', sequences: [1] });
const state = (over: Partial<ShareState> = {}): ShareState => ({
  ...newState({ url: 's3://x', scope: 'me', name: 'a' }, false),
  ...{ machine: 'ab'.repeat(16), keys: { publicKey: 'p', privateKey: 'q' } },
  ...over,
});
const text = (name: string) => readFile(path.join(dir, name), 'utf8');

describe('the state of sharing', () => {
  it('comes back as it was, whatever changed', async () => {
    const file = createStateFile(dir);
    expect([await file.load(), file.isThere()]).toEqual([null, false]);
    let now = state({ known: { one: known('a'), two: known('b') } });
    const changes: Partial<ShareState>[] = [
      { outbox: [getRow(0), getRow(1)], next: 2 },
      { known: { ...now.known, three: known('c') }, pushed: '2026-03-01T00:00:00.000Z' },
      { known: { one: known('changed') }, turns: { t: { sequence: 3, nodeId: 'n' } }, erasing: [1, 2] },
      { outbox: [getRow(1)], confirmed: { sequence: 0, digest: 'd' } },
      { turns: {}, erasing: [], outbox: [] },
    ];
    for (const change of changes) {
      now = { ...now, ...change };
      await file.save(now);
      expect(await createStateFile(dir).load()).toEqual(now);
    }
    for (const name of ['state.jsonl', 'outbox.json'])
      expect((await stat(path.join(dir, name))).mode & 0o777).toBe(0o600);
    expect(file.isThere()).toBe(true);
    await file.remove();
    expect([await file.load(), file.isThere()]).toEqual([null, false]);
  });

  it('of an earlier version says that nothing of a machine that left is still there', async () => {
    const { leaving: _, ...earlier } = state();
    await createStateFile(dir).save(earlier as ShareState);
    expect(await createStateFile(dir).load()).toMatchObject({ url: 's3://x', leaving: '' });
  });

  it('writes what changed, and all of it once in a while', async () => {
    const file = createStateFile(dir);
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`node ${at}`, known('a'.repeat(64))]));
    await file.save(state({ known: many }));
    const whole = (await text('state.jsonl')).length;
    await file.save(state({ known: many, pulled: '2026-03-01T00:00:00.000Z' }));
    expect((await text('state.jsonl')).length - whole).toBeLessThan(200);
    for (let at = 0; at < 12; at += 1) {
      const changed = Object.fromEntries(Object.keys(many).map((id) => [id, known(`${at}`.repeat(64))]));
      await file.save(state({ known: changed }));
    }
    expect((await text('state.jsonl')).length).toBeLessThan(2 * whole + 1_100_000);
  });

  it('keeps no row that has left, and makes one again that came before its state', async () => {
    const file = createStateFile(dir);
    const now = state({ outbox: [getRow(0), getRow(1)], next: 2 });
    await file.save(now);
    await file.save({ ...now, outbox: [getRow(1)] });
    expect(`${await text('state.jsonl')}${await text('outbox.json')}`).not.toContain('payload 0');
    await writeFile(path.join(dir, 'outbox.json'), JSON.stringify([getRow(1), getRow(2)]), { mode: 0o600 });
    expect((await createStateFile(dir).load())?.outbox).toEqual([getRow(1)]);
  });

  it('loses the last line at most where it is torn', async () => {
    const file = createStateFile(dir);
    await file.save(state());
    await appendFile(path.join(dir, 'state.jsonl'), '\n{"pushed":"2026-0');
    const again = createStateFile(dir);
    expect(await again.load()).toEqual(state());
    await writeFile(path.join(dir, 'state.jsonl'), 'nothing', { mode: 0o600 });
    await expect(again.load()).rejects.toThrow(/state\.jsonl cannot be read/);
  });
});
