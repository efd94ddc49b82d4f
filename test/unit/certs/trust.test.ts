import { X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issue } from '../../../certs/ca.ts';
import { type MachineFacts, trustStores } from '../../../certs/trust/index.ts';
import { type Argv, createDarwinTrust } from '../../../certs/trust/store.ts';

let dir: string;
let rootFile: string;
let root: X509Certificate;
let stranger: X509Certificate;

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-trust-unit-'));
  rootFile = path.join(dir, 'root.pem');
  writeFileSync(rootFile, (await issue('api.anthropic.com', Date.now())).rootPem);
  root = new X509Certificate(readFileSync(rootFile));
  stranger = new X509Certificate((await issue('other.example', Date.now())).rootPem);
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('which stores a machine has', () => {
  const machine = (platform: NodeJS.Platform, ...present: string[]): MachineFacts => ({
    platform,
    exists: (file) => present.includes(file),
    findTool: (name) => present.find((file) => path.basename(file) === name) ?? null,
  });
  const debian = ['/etc/ca-certificates.conf', '/usr/sbin/update-ca-certificates'];

  it.each([
    ['Debian', ['debian'], machine('linux', ...debian)],
    ['Fedora', ['fedora'], machine('linux', '/etc/pki/ca-trust/source/anchors', '/usr/bin/update-ca-trust')],
    ['Arch', ['arch'], machine('linux', '/etc/ca-certificates/trust-source/anchors', '/usr/bin/trust')],
    [
      'Arch, which ships the others programs too',
      ['arch'],
      machine('linux', '/etc/ca-certificates/trust-source/anchors', '/usr/bin/trust', '/usr/bin/update-ca-trust'),
    ],
    ['a Linux of which nothing is known', [], machine('linux', '/usr/sbin/update-ca-certificates')],
    ['macOS', ['darwin'], machine('darwin')],
    ['FreeBSD', [], machine('freebsd')],
  ])('%s', (_, ids, facts) => {
    expect(trustStores({}, dir, facts).map(({ id }) => id)).toEqual(ids);
  });

  it('runs a program of sbin, which is not in the PATH of every shell', async () => {
    const [store] = trustStores({}, dir, { ...machine('linux', ...debian), findTool: () => null });
    expect((await store?.describe(rootFile))?.commands.at(-1)).toContain('/usr/sbin/update-ca-certificates');
  });
});

describe('the System keychain of macOS', () => {
  const keychain = '/Library/Keychains/System.keychain';

  /** Holds certificates as the real program does, and notes each command that is no look. */
  function security(): { readonly done: Argv[]; readonly run: (argv: Argv) => Promise<string> } {
    const held = [stranger];
    const done: Argv[] = [];
    const run = async (argv: Argv): Promise<string> => {
      if (argv[1] === 'find-certificate') return held.map((cert) => cert.toString()).join('');
      done.push(argv);
      const last = argv.at(-1) ?? '';
      if (argv.includes('add-trusted-cert')) held.push(new X509Certificate(readFileSync(last)));
      // Reads the file, as the real one does: it has to be there by now.
      if (argv.includes('remove-trusted-cert')) expect(new X509Certificate(readFileSync(last)).raw).toEqual(root.raw);
      const sha1 = argv[argv.indexOf('-Z') + 1];
      const at = held.findIndex((cert) => cert.fingerprint.replaceAll(':', '') === sha1);
      if (argv.includes('delete-certificate')) held.splice(at, 1);
      return '';
    };
    return { done, run };
  }

  it('is changed by the documented commands only, and left as it was', async () => {
    const { run, done } = security();
    const trust = createDarwinTrust(dir, run);
    const add = ['sudo', 'security', 'add-trusted-cert', '-d', '-p', 'ssl', '-p', 'basic', '-k', keychain, rootFile];
    expect((await trust.describe(rootFile)).commands).toEqual([add]);
    expect(done).toEqual([]);
    await trust.install(rootFile);
    expect(await trust.isInstalled(root.fingerprint256)).toBe(true);
    const sha1 = root.fingerprint.replaceAll(':', '');
    const input = path.join(dir, `untrust-${sha1}.pem`);
    expect(await trust.remove(root.fingerprint256)).toBe(true);
    expect(done).toEqual([
      add,
      ['sudo', 'security', 'remove-trusted-cert', '-d', input],
      ['sudo', 'security', 'delete-certificate', '-Z', sha1, keychain],
    ]);
    expect(existsSync(input)).toBe(false);
    expect(await trust.remove(root.fingerprint256)).toBe(false);
    expect(await trust.isInstalled(stranger.fingerprint256)).toBe(true);
  });

  it('is not believed when it takes the command and holds nothing', async () => {
    const trust = createDarwinTrust(dir, async () => '');
    await expect(trust.install(rootFile)).rejects.toMatchObject({ code: 'trust_failed' });
  });
});
