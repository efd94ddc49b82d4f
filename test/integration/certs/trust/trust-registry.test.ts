import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Certs,
  distrustRoots,
  ensureCerts,
  inspectTrust,
  removeCerts,
  trustRoot,
} from '../../../../certs/index.ts';
import { CometError } from '../../../../common/errors.ts';
import { type HomePaths, homePaths } from '../../../../common/paths.ts';
import { createMemoryTrust, type MemoryTrust } from '../../../helpers/trust.ts';

const nowMs = Date.now();
const DAY_MS = 86_400_000;

let dir: string;
let paths: HomePaths;
let store: MemoryTrust;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-trusted-'));
  paths = homePaths(path.join(dir, 'home'));
  store = createMemoryTrust();
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function issue(ms = nowMs, isReissued = false): Promise<Certs> {
  if (isReissued) await removeCerts(paths);
  return ensureCerts(paths, { nowMs: ms, userExtraCaFile: null });
}
const record = (): string => path.join(paths.home, 'trusted-roots.json');

describe('a root that a store was told to trust', () => {
  it('is remembered privately, and nothing of it stays after the end', async () => {
    const certs = await issue();
    await trustRoot(paths, store, certs.rootFile);
    expect(statSync(record()).mode & 0o777).toBe(0o600);
    expect(await inspectTrust(paths, store, certs.fingerprint)).toEqual({
      holdsCurrent: true,
      wasAsked: true,
      former: [],
    });
    expect(await distrustRoots(paths, [store])).toEqual({ stores: [store.name], unreachable: [] });
    await removeCerts(paths);
    expect(store.held.size).toBe(0);
    expect(readdirSync(paths.home)).toEqual([]);
  });

  it.each([
    ['reissued', 0, true],
    ['renewed by its successor', 395.5 * DAY_MS, false],
    ['replaced after it expired', 400 * DAY_MS, false],
  ])('is found and replaced once it was %s', async (_, laterMs, reissue) => {
    const first = await issue();
    await trustRoot(paths, store, first.rootFile);
    if (!reissue) await issue(nowMs + 370 * DAY_MS);
    const second = await issue(nowMs + laterMs, reissue);
    expect(second.fingerprint).not.toBe(first.fingerprint);
    expect(await inspectTrust(paths, store, second.fingerprint)).toEqual({
      holdsCurrent: false,
      wasAsked: true,
      former: [first.fingerprint],
    });
    await trustRoot(paths, store, second.rootFile);
    expect([...store.held]).toEqual([second.fingerprint]);
    expect((await inspectTrust(paths, store, second.fingerprint)).former).toEqual([]);
  });

  it('goes at the end though another one is in force, and though no certificates are left', async () => {
    await trustRoot(paths, store, (await issue()).rootFile);
    await issue(nowMs, true);
    await removeCerts(paths);
    await distrustRoots(paths, [store]);
    expect(store.held.size).toBe(0);
    expect(existsSync(record())).toBe(false);
  });

  it('stays recorded when the store fails half way, or cannot be read', async () => {
    const first = await issue();
    await trustRoot(paths, store, first.rootFile);
    const second = await issue(nowMs, true);
    const broken = { ...store, install: () => Promise.reject(new Error('no')) };
    await expect(trustRoot(paths, broken, second.rootFile)).rejects.toThrow('no');
    expect((await inspectTrust(paths, store, second.fingerprint)).former).toEqual([first.fingerprint]);
    expect(await distrustRoots(paths, [createMemoryTrust('other')])).toEqual({ stores: [], unreachable: ['memory'] });
    expect(existsSync(record())).toBe(true);
    expect((await distrustRoots(paths, [store])).stores).toEqual([store.name]);
    expect(store.held.size).toBe(0);
  });

  it('skips a store that was never changed and cannot be read, but not one that was changed', async () => {
    const certs = await issue();
    await trustRoot(paths, store, certs.rootFile);
    const look = () => Promise.reject(new CometError('trust_failed', 'bad database'));
    const never = { ...createMemoryTrust('never'), isInstalled: look };
    expect(await inspectTrust(paths, never, certs.fingerprint)).toMatchObject({ holdsCurrent: false, wasAsked: false });
    await expect(distrustRoots(paths, [{ ...store, isInstalled: look }])).rejects.toThrow('bad database');
    expect((await distrustRoots(paths, [never, store])).stores).toEqual([store.name]);
    expect(store.held.size).toBe(0);
  });

  it('is never guessed from a damaged record', async () => {
    await trustRoot(paths, store, (await issue()).rootFile);
    writeFileSync(record(), '{');
    await expect(distrustRoots(paths, [store])).rejects.toMatchObject({ code: 'ca_unreadable' });
    expect(store.held.size).toBe(1);
  });
});
