import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { issue } from '../../../../certs/ca.ts';
import { ensureCerts, removeCerts, type TrustStore, trustStores } from '../../../../certs/index.ts';
import { createAnchorTrust } from '../../../../certs/trust/store.ts';
import { homePaths } from '../../../../common/paths.ts';

const isRoot = process.getuid?.() === 0;
const hasTool = existsSync('/usr/sbin/update-ca-certificates');
const hooksDir = '/etc/ca-certificates/update.d';
// The real store belongs to whoever runs the tests; only a disposable machine may lend it, and only where
// nothing else hangs on it (a Java key store is never the same twice) and an update changes nothing by itself.
const mayUseRealStore =
  isRoot && hasTool && process.env['CI'] !== undefined && readdirSync(hooksDir).length === 0 && isSettled();

let dir: string;
let rootFile: string;
let fingerprint: string;

beforeEach(async () => {
  // Debian leaves it out for users other than root.
  vi.stubEnv('PATH', `${process.env['PATH']}:/usr/sbin`);
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-trust-'));
  const certs = await ensureCerts(homePaths(path.join(dir, 'home')), { nowMs: Date.now(), userExtraCaFile: null });
  ({ rootFile, fingerprint } = certs);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await removeCerts(homePaths(path.join(dir, 'home')));
  rmSync(dir, { recursive: true, force: true });
});

/** Whether `update-ca-certificates --fresh` leaves the real store as it is; tried on a copy. */
function isSettled(): boolean {
  const copy = mkdtempSync(path.join(os.tmpdir(), 'comet-store-'));
  try {
    cpSync('/etc/ssl/certs', copy, { recursive: true, verbatimSymlinks: true });
    const before = snapshot(copy);
    execFileSync('update-ca-certificates', ['--fresh', '--etccertsdir', copy, '--hooksdir', copy], { stdio: 'ignore' });
    return snapshot(copy).join('\n') === before.join('\n');
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** The system's updater, for the store in another root. */
function updaterBelow(sysroot: string): string {
  const file = path.join(sysroot, '../update-ca-certificates');
  const folders = {
    certsconf: 'etc/ca-certificates.conf',
    certsdir: 'usr/share/ca-certificates',
    localcertsdir: 'usr/local/share/ca-certificates',
    etccertsdir: 'etc/ssl/certs',
    hooksdir: 'etc/ca-certificates/update.d',
  };
  const options = Object.entries(folders).map(([key, dir]) => `--${key} '${path.join(sysroot, dir)}'`);
  writeFileSync(file, `#!/bin/sh\nexec /usr/sbin/update-ca-certificates ${options.join(' ')} "$@"\n`, { mode: 0o700 });
  return file;
}

/** Every name below `root` with what it holds or points to. */
function snapshot(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const file = path.join(root, name);
      const found = lstatSync(file);
      if (found.isSymbolicLink()) return `${name} -> ${readlinkSync(file)}`;
      if (!found.isFile()) return name;
      const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
      return `${name} ${(found.mode & 0o777).toString(8)} ${digest}`;
    });
}

describe.runIf(hasTool)('the Debian store, in a root of its own', () => {
  let sysroot: string;
  let trust: TrustStore;
  const local = (): string => path.join(sysroot, 'usr/local/share/ca-certificates');

  beforeEach(async () => {
    sysroot = path.join(dir, 'sysroot');
    for (const folder of [
      'etc/ssl/certs',
      'usr/local/share/ca-certificates',
      'usr/share/ca-certificates',
      'etc/ca-certificates/update.d',
    ]) {
      mkdirSync(path.join(sysroot, folder), { recursive: true });
    }
    writeFileSync(path.join(sysroot, 'etc/ca-certificates.conf'), '# none\n');
    writeFileSync(path.join(local(), 'corporate.crt'), (await issue('corp.example', Date.now())).rootPem);
    trust = createAnchorTrust('debian', { sysroot, sudo: false, program: updaterBelow(sysroot) });
  });

  it('is told exactly what will be done, and nothing is done', async () => {
    const before = snapshot(sysroot);
    const plan = await trust.describe(rootFile);
    expect(plan.fingerprint).toBe(fingerprint);
    expect(plan.commands[0]).toEqual(['install', '-D', '-m', '0644', rootFile, path.join(local(), 'comet-cc.crt')]);
    expect(plan.commands[1]).toEqual([path.join(dir, 'update-ca-certificates')]);
    expect(snapshot(sysroot)).toEqual(before);
  });

  it('takes the root, shows it, and is as it was after the removal', async () => {
    await trust.install(await otherRoot());
    await trust.remove((await trust.describe(await otherRoot())).fingerprint);
    const before = snapshot(sysroot);
    expect(await trust.isInstalled(fingerprint)).toBe(false);
    await trust.install(rootFile);
    expect(await trust.isInstalled(fingerprint)).toBe(true);
    expect(readFileSync(path.join(sysroot, 'etc/ssl/certs/ca-certificates.crt'), 'utf8')).toContain(
      readFileSync(rootFile, 'utf8').trim(),
    );
    await trust.install(rootFile);
    expect(await trust.remove(fingerprint)).toBe(true);
    expect(await trust.isInstalled(fingerprint)).toBe(false);
    expect(snapshot(sysroot)).toEqual(before);
    expect(await trust.remove(fingerprint)).toBe(false);
  });

  it('finds the root by its fingerprint, also under another name', async () => {
    copyFileSync(rootFile, path.join(local(), 'renamed.crt'));
    expect(await trust.isInstalled(fingerprint)).toBe(true);
    await trust.remove(fingerprint);
    expect(readdirSync(local())).toEqual(['corporate.crt']);
  });

  it('takes the place of an older root, of which no file and no link by hash stays', async () => {
    await trust.install(rootFile);
    await trust.remove(fingerprint);
    const older = await otherRoot();
    const former = (await trust.describe(older)).fingerprint;
    await trust.install(rootFile);
    const alone = snapshot(sysroot);
    await trust.remove(fingerprint);
    await trust.install(older);
    const plan = await trust.describe(rootFile, [former]);
    expect(plan.commands.map(([program = '']) => path.basename(program))).toEqual([
      'rm',
      'update-ca-certificates',
      'install',
      'update-ca-certificates',
    ]);
    await trust.install(rootFile, [former]);
    expect(await trust.isInstalled(former)).toBe(false);
    expect(await trust.isInstalled(fingerprint)).toBe(true);
    expect(snapshot(sysroot)).toEqual(alone);
  });

  it("leaves a stranger's file under our name alone", async () => {
    copyFileSync(await otherRoot(), path.join(local(), 'comet-cc.crt'));
    await expect(trust.install(rootFile)).rejects.toMatchObject({ code: 'trust_failed' });
    expect(await trust.remove(fingerprint)).toBe(false);
    expect(existsSync(path.join(local(), 'comet-cc.crt'))).toBe(true);
  });

  it('says which command failed', async () => {
    rmSync(path.join(sysroot, 'etc/ssl/certs'), { recursive: true });
    await expect(trust.install(rootFile)).rejects.toMatchObject({
      code: 'trust_failed',
      message: expect.stringContaining('update-ca-certificates'),
    });
  });

  async function otherRoot(): Promise<string> {
    const file = path.join(dir, 'other.pem');
    if (!existsSync(file)) writeFileSync(file, (await issue('other.example', Date.now())).rootPem);
    return file;
  }
});

it('asks for sudo only where it is needed, and names a missing root', async () => {
  const trust = createAnchorTrust('debian', { sysroot: '/', sudo: true });
  expect((await trust.describe(rootFile)).commands).toEqual([
    ['sudo', 'install', '-D', '-m', '0644', rootFile, '/usr/local/share/ca-certificates/comet-cc.crt'],
    ['sudo', 'update-ca-certificates'],
  ]);
  await expect(trust.describe(path.join(dir, 'none.pem'))).rejects.toMatchObject({ code: 'ca_unreadable' });
});

it.runIf(mayUseRealStore)(
  'the store of this very machine takes the root, and is byte-identical after the removal',
  async () => {
    const [trust] = trustStores({ PATH: process.env['PATH'], HOME: dir }, dir);
    const both = (): string[] => [...snapshot('/etc/ssl/certs'), ...snapshot('/usr/local/share/ca-certificates')];
    const before = both();
    try {
      await trust?.install(rootFile);
      expect(await trust?.isInstalled(fingerprint)).toBe(true);
    } finally {
      await trust?.remove(fingerprint);
    }
    expect(await trust?.isInstalled(fingerprint)).toBe(false);
    expect(both()).toEqual(before);
  },
);
