import { rm, utimes } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import type { EpochPlan, Injection, PlanRecord } from '../../../../proxy/rewrite/plan.ts';
import { openPlanCache, openPlanStore } from '../../../../proxy/rewrite/plan-store.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const use = { atMs: 0, model: 'm', effort: '' };

function getPlan(sessionId: string): EpochPlan {
  const nothing = { cut: null, rounds: [], strippedThrough: null, systemNodeIds: [], injections: [] };
  const about = { id: `plan of ${sessionId}`, sessionId, createdAtMs: 0, epoch: 0 };
  return { ...nothing, ...about, systemBlock: 'ours', broken: false };
}

/** Requests of a session: its n-th has n+1 messages, every second one an answer. */
const getLineage = (sessionId: string, requests: number): string[] =>
  Array.from({ length: 2 * requests - 1 }, (_, at) => `${sessionId} ${at}`);
const getView = (lineage: readonly string[]) => ({
  lineage,
  infos: lineage.map((_, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant' })) as never,
});

function getRecords(sessionId: string, requests = 4): PlanRecord[] {
  const [first, ...rest] = getLineage(sessionId, requests).filter((_, at) => at % 2 === 0);
  const plan = getPlan(sessionId);
  const served = rest.map((each) => ({ kind: 'served', planId: plan.id, served: each, use }) as const);
  return [{ kind: 'plan', plan, served: first as string, use }, ...served];
}

async function openShelf(dir: string, most = 2) {
  const store = openPlanStore(dir);
  const shelf = await openPlanCache(store, silentLog, most);
  const live = async (sessionId: string): Promise<void> => {
    for (const record of getRecords(sessionId)) await shelf.save(sessionId, record);
  };
  return { store, shelf, live };
}

it('a session that sent a prefix itself keeps to its plan where another session reads the same', async () => {
  const { shelf, live } = await openShelf(path.join(await tempDir(), 'plans'));
  await live('a');
  const view = getView(getLineage('a', 4));
  expect(shelf.index.match(view, 'b')).toMatchObject({ plan: { sessionId: 'a' }, servedAt: 6 });
  await shelf.save('b', { kind: 'plan', plan: getPlan('b'), served: getLineage('a', 1)[0] as string, use });
  expect(shelf.index.match(view, 'b')).toMatchObject({ plan: getPlan('b'), servedAt: 0 });
  expect(shelf.index.match(view, 'b', 'answered')).toBeNull();
});

it('what was saved too late to be sent is forgotten, also after a restart', async () => {
  const dir = path.join(await tempDir(), 'plans');
  const { shelf } = await openShelf(dir);
  const view = getView(getLineage('a', 1));
  const served = view.lineage[0] as string;
  const { id } = getPlan('a');
  const injection = { anchor: served, channel: 'block', text: 'late' } as Injection;
  await shelf.save('a', { kind: 'plan', plan: getPlan('a'), served, use });
  await shelf.save('a', { kind: 'injections', planId: id, injections: [injection], served, use });
  await shelf.save('a', { kind: 'unsent', planId: id, added: 1 });
  expect(shelf.index.match(view, 'a')?.plan).toEqual(getPlan('a'));
  await shelf.save('a', { kind: 'plan', plan: { ...getPlan('a'), id: 'late' }, served, use });
  await shelf.save('a', { kind: 'unsent', planId: 'late', added: null });
  expect(shelf.index.match(view, 'a')?.plan).toEqual(getPlan('a'));
  await shelf.save('a', { kind: 'unsent', planId: id, added: null });
  expect(shelf.index.match(view, 'a')).toBeNull();
  await shelf.save('b', { kind: 'plan', plan: getPlan('b'), served, use });
  const again = await openShelf(dir);
  for (const { index } of [shelf, again.shelf]) {
    expect([index.match(view, 'a'), index.wasRewritten('a'), index.wasRewritten('b')]).toEqual([null, false, true]);
  }
});

it('remembers the last use of each model, also after a restart', async () => {
  const dir = path.join(await tempDir(), 'plans');
  const { shelf, live } = await openShelf(dir);
  await live('a');
  const view = getView(getLineage('a', 4));
  const served = view.lineage.at(-1) as string;
  const uses = [
    { ...use, model: 'other' },
    { ...use, atMs: 1 },
  ];
  for (const each of uses) await shelf.save('a', { kind: 'served', planId: getPlan('a').id, served, use: each });
  for (const each of [shelf, (await openShelf(dir)).shelf]) expect(each.index.match(view, 'a')?.uses).toEqual(uses);
});

describe('plans of more sessions than are held', () => {
  it('are evicted, and loaded when their session returns', async () => {
    const { shelf, live } = await openShelf(path.join(await tempDir(), 'plans'));
    for (const id of ['a', 'b', 'c']) await live(id);
    const view = getView(getLineage('a', 4));
    expect(shelf.index.match(view, 'a')).toBeNull();
    expect(shelf.index.wasRewritten('a')).toBe(true);
    await shelf.load(view.lineage, 'a');
    expect(shelf.index.match(view, 'a')).toEqual({ plan: getPlan('a'), servedAt: 6, signatures: [], uses: [use] });
    expect(shelf.index.getRecords('a')).toHaveLength(5);
    await live('a');
    expect(shelf.index.getRecords('b')).toEqual([]); // had to make room
  });

  it('are found by a fork, and not by a session that shares only a first prompt', async () => {
    const { shelf, live } = await openShelf(path.join(await tempDir(), 'plans'));
    for (const id of ['a', 'b', 'c']) await live(id);
    const first = getLineage('a', 1);
    await shelf.load([...first, 'another answer', 'another prompt'], 'd');
    expect(shelf.index.getRecords('a')).toEqual([]);
    const fork = getView([...getLineage('a', 3), 'went on', 'elsewhere']);
    await shelf.load(fork.lineage, 'e');
    expect(shelf.index.match(fork, 'e')).toMatchObject({ plan: getPlan('a'), servedAt: 4 });
  });

  it('are read once for all who ask at the same time, and not again', async () => {
    const { store, shelf, live } = await openShelf(path.join(await tempDir(), 'plans'));
    for (const id of ['a', 'b', 'c']) await live(id);
    let reads = 0;
    const read = store.read;
    store.read = (sessionId) => {
      reads += 1;
      return read(sessionId);
    };
    const lineage = getLineage('a', 4);
    await Promise.all([shelf.load(lineage, 'a'), shelf.load(lineage, 'a fork')]);
    await shelf.load(lineage, 'a');
    expect(reads).toBe(1);
  });

  it('are held to the newest at a start too, and nothing of them is lost', async () => {
    const dir = path.join(await tempDir(), 'plans');
    const { live } = await openShelf(dir, 9);
    for (const id of ['a', 'b', 'c', 'd']) await live(id);
    const { shelf } = await openShelf(dir);
    const held = ['a', 'b', 'c', 'd'].filter((id) => shelf.index.getRecords(id).length > 0);
    expect(held).toHaveLength(2);
    for (const id of ['a', 'b', 'c', 'd']) {
      const view = getView(getLineage(id, 4));
      await shelf.load(view.lineage, id);
      expect(shelf.index.match(view, id)?.plan).toEqual(getPlan(id));
    }
  });

  it('delay no start: those of earlier sessions are found while they are still read', async () => {
    const dir = path.join(await tempDir(), 'plans');
    const { live } = await openShelf(dir, 99);
    const ids = Array.from({ length: 99 }, (_, at) => `s${String(at).padStart(2, '0')}`);
    for (const id of ids) await live(id);
    for (const [at, id] of ids.entries()) await utimes(path.join(dir, `${id}.jsonl`), at, at);
    const { shelf } = await openShelf(dir);
    await shelf.load(['a first prompt'], 'new');
    expect(['s98', 's97', 's96', 's00'].map((id) => shelf.index.getRecords(id).length > 0)).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(['s00', 's01'].map((id) => shelf.index.knows(id))).toEqual([false, false]);
    await shelf.load(getLineage('s00', 4), 's00');
    expect(shelf.index.match(getView(getLineage('s00', 4)), 's00')?.plan).toEqual(getPlan('s00'));
    expect(shelf.index.knows('s01')).toBe(false);
    const fork = getView([...getLineage('s01', 3), 'went on', 'elsewhere']);
    let waits = 0;
    await shelf.load(fork.lineage, 'fork', () => (waits += 1));
    expect(waits).toBe(1);
    expect(shelf.index.match(fork, 'fork')).toMatchObject({ plan: getPlan('s01'), servedAt: 4 });
  });

  it('stay where the disk does not take them', async () => {
    const dir = path.join(await tempDir(), 'plans');
    const { shelf, store, live } = await openShelf(dir);
    store.append = () => Promise.reject(new Error('ENOSPC'));
    for (const record of getRecords('a')) shelf.saveLater('a', record);
    await new Promise(setImmediate);
    store.append = openPlanStore(dir).append;
    for (const id of ['b', 'c', 'd']) await live(id);
    expect(shelf.index.match(getView(getLineage('a', 4)), 'a')?.plan).toEqual(getPlan('a'));
  });

  it('are given up where their file went meanwhile: their session is known, and healed', async () => {
    const dir = path.join(await tempDir(), 'plans');
    const { shelf, store, live } = await openShelf(dir);
    for (const id of ['a', 'b', 'c']) await live(id);
    await rm(path.join(dir, 'a.jsonl'));
    await shelf.load(getLineage('a', 4), 'a');
    expect(shelf.index.match(getView(getLineage('a', 4)), 'a')).toBeNull();
    expect(shelf.index.wasRewritten('a')).toBe(true);
    expect(store.problems()).toEqual([]);
  });
});
