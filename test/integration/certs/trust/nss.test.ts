import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { issue } from '../../../../certs/ca.ts';
import { inspectMachine, type TrustStore, trustStores } from '../../../../certs/index.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-nss-'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const getNss = (home: string): TrustStore | undefined =>
  trustStores(inspectMachine({ PATH: process.env['PATH'], HOME: home }, dir)).find(({ id }) => id === 'nss');

it('is no store of a user without a database', () => {
  expect(getNss(dir)).toBeUndefined();
});

describe.runIf(process.platform === 'linux' && hasCertutil())("the user's NSS database", () => {
  let trust: TrustStore;
  const certutil = (...args: string[]): string =>
    execFileSync('certutil', [...args, '-d', `sql:${path.join(dir, '.pki/nssdb')}`], { encoding: 'utf8' });

  beforeEach(() => {
    mkdirSync(path.join(dir, '.pki/nssdb'), { recursive: true });
    certutil('-N', '--empty-password');
    trust = getNss(dir) as TrustStore;
  });

  async function root(name: string): Promise<string> {
    const file = path.join(dir, `${name}.pem`);
    writeFileSync(file, (await issue('api.anthropic.com', Date.now())).rootPem);
    return file;
  }

  it('takes the root, lets another one take its place, and keeps what others put there', async () => {
    const [corporate, first, second] = [await root('corporate'), await root('first'), await root('second')];
    certutil('-A', '-t', 'C,,', '-n', 'Corporate root, 2nd', '-i', corporate);
    const before = certutil('-L');
    const [{ fingerprint: old }, plan] = [await trust.describe(first), await trust.describe(second)];
    expect(await trust.isInstalled(old)).toBe(false);
    await trust.install(first);
    expect(await trust.isInstalled(old)).toBe(true);
    expect((await trust.describe(second, [old])).commands).toHaveLength(2);
    await trust.install(second, [old]);
    expect([await trust.isInstalled(old), await trust.isInstalled(plan.fingerprint)]).toEqual([false, true]);
    expect(certutil('-L')).toMatch(/^comet-cc [0-9a-f]{16} +C,, *$/m);
    expect(await trust.remove(plan.fingerprint)).toBe(true);
    expect(await trust.remove(plan.fingerprint)).toBe(false);
    expect(certutil('-L')).toBe(before);
  });

  it('is described by the very commands, and untouched by that', async () => {
    const file = await root('first');
    const plan = await trust.describe(file);
    const name = `comet-cc ${plan.fingerprint.replaceAll(':', '').slice(0, 16).toLowerCase()}`;
    expect(plan.commands.map((command) => command.slice(1))).toEqual([
      ['-A', '-d', `sql:${path.join(dir, '.pki/nssdb')}`, '-t', 'C,,', '-n', name, '-i', file],
    ]);
    expect(certutil('-L')).not.toContain('comet-cc');
  });
});

function hasCertutil(): boolean {
  try {
    execFileSync('certutil', ['-H'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
