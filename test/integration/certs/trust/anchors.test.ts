import { X509Certificate } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { issue } from '../../../../certs/ca.ts';
import { readFingerprints } from '../../../../certs/store.ts';
import { systemRoots } from '../../../../certs/trust/index.ts';
import { createAnchorTrust } from '../../../../certs/trust/store.ts';

let dir: string;
let sysroot: string;
let roots: { readonly file: string; readonly fingerprint: string }[];

let pems: readonly string[];

beforeAll(async () => {
  const issued = await Promise.all([1, 2].map(() => issue('api.anthropic.com', Date.now())));
  pems = issued.map(({ rootPem }) => rootPem);
});

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-anchors-'));
  sysroot = path.join(dir, 'sysroot');
  roots = pems.map((pem, i) => {
    const file = path.join(dir, `${i}.pem`);
    writeFileSync(file, pem);
    return { file, fingerprint: new X509Certificate(pem).fingerprint256 };
  });
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A program that makes `bundle` of the anchors, as the real one does, and writes down how it was called. */
function stub(name: string, anchors: string, bundle: string): string {
  const file = path.join(dir, name);
  const lines = ['#!/bin/sh', `echo "$@" >> ${dir}/calls`, `cat ${anchors}/* > ${bundle} 2>/dev/null || :`, 'exit 0'];
  writeFileSync(file, `${lines.join('\n')}\n`);
  chmodSync(file, 0o755);
  return file;
}

function folders(...names: string[]): void {
  for (const name of names) mkdirSync(path.join(sysroot, name), { recursive: true });
}

describe.runIf(process.platform === 'linux').each([
  {
    family: 'Fedora',
    anchors: 'etc/pki/ca-trust/source/anchors',
    bundle: 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
    ours: 'comet-cc.pem',
    call: 'extract',
    create: (tool: string, sudo: boolean) => createAnchorTrust('fedora', { sysroot, sudo, program: tool }),
  },
  {
    family: 'Arch',
    anchors: 'etc/ca-certificates/trust-source/anchors',
    bundle: 'etc/ca-certificates/extracted/tls-ca-bundle.pem',
    ours: 'comet-cc.crt',
    call: 'extract-compat',
    create: (tool: string, sudo: boolean) => createAnchorTrust('arch', { sysroot, sudo, program: tool }),
  },
])('the anchors of $family, with a stand-in for its program', ({ anchors, bundle, ours, call, create }) => {
  const anchorsDir = (): string => path.join(sysroot, anchors);
  const calls = (): string => readFileSync(path.join(dir, 'calls'), 'utf8');
  const tool = (): string => stub('tool', anchorsDir(), path.join(sysroot, bundle));

  beforeEach(() => folders(anchors, path.dirname(bundle)));

  it('are told what will be done, and nothing is done', async () => {
    const [root] = roots;
    const program = tool();
    const plan = await create(program, true).describe(root?.file ?? '');
    expect(plan.commands).toEqual([
      ['sudo', 'install', '-D', '-m', '0644', root?.file, path.join(anchorsDir(), ours)],
      ['sudo', program, call],
    ]);
    expect(plan.fingerprint).toBe(root?.fingerprint);
    expect(readdirSync(anchorsDir())).toEqual([]);
    expect(existsSync(path.join(dir, 'calls'))).toBe(false);
  });

  it('take a root, let another one take its place, and are empty at the end', async () => {
    const [first, second] = roots as [(typeof roots)[0], (typeof roots)[0]];
    const trust = create(tool(), false);
    await trust.install(first.file);
    expect(await trust.isInstalled(first.fingerprint)).toBe(true);
    expect(readFileSync(path.join(sysroot, bundle), 'utf8')).toBe(readFileSync(first.file, 'utf8'));
    await expect(trust.install(second.file)).rejects.toMatchObject({ code: 'trust_failed' });
    await trust.install(second.file, [first.fingerprint]);
    expect([await trust.isInstalled(first.fingerprint), await trust.isInstalled(second.fingerprint)]).toEqual([
      false,
      true,
    ]);
    expect(await trust.remove(second.fingerprint)).toBe(true);
    expect(await trust.remove(second.fingerprint)).toBe(false);
    expect(readdirSync(anchorsDir())).toEqual([]);
    expect(readFileSync(path.join(sysroot, bundle), 'utf8')).toBe('');
    expect(calls()).toBe(`${call}\n`.repeat(4));
  });

  it('are said to hold the root still when the bundle does after the removal', async () => {
    const [root] = roots as [(typeof roots)[0]];
    await create(tool(), false).install(root.file);
    const idle = path.join(dir, 'idle');
    writeFileSync(idle, '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    await expect(create(idle, false).remove(root.fingerprint)).rejects.toMatchObject({
      code: 'trust_failed',
      message: expect.stringContaining(root.fingerprint),
    });
  });
});

describe('what the machine trusts', () => {
  const listed = (env: NodeJS.ProcessEnv, ...files: string[]): string[] =>
    readFingerprints(systemRoots(env, files).join(''));

  it('is its store, and the file of the user', () => {
    const [own, store] = roots.map(({ file }) => file) as [string, string];
    const [ownPrint, storePrint] = roots.map(({ fingerprint }) => fingerprint);
    writeFileSync(path.join(dir, 'store.pem'), `# of the company\n${readFileSync(store, 'utf8')}`);
    const env = { NODE_EXTRA_CA_CERTS: own };
    // Newer versions of Node list the store of this machine.
    const found = 'getCACertificates' in tls ? [] : [storePrint];
    expect(listed(env, '/nowhere.pem', path.join(dir, 'store.pem'))).toEqual(
      expect.arrayContaining([ownPrint, ...found]),
    );
    expect(listed({ ...env, CLAUDE_CODE_CERT_STORE: 'bundled' }, store)).toEqual([ownPrint]);
    expect(listed({ SSL_CERT_FILE: store, CLAUDE_CODE_CERT_STORE: 'bundled,system' }, own)).toEqual(
      'getCACertificates' in tls ? expect.any(Array) : [storePrint],
    );
    expect(listed({ SSL_CERT_FILE: dir }, own)).toEqual('getCACertificates' in tls ? expect.any(Array) : []);
  });
});
