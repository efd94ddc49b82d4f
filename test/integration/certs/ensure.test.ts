import { X509Certificate } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { issue } from '../../../certs/ca.ts';
import { type Certs, ensureCerts, loadLeaf, removeCerts, userCaFile } from '../../../certs/index.ts';
import { getGeneration, publish } from '../../../certs/store.ts';
import { type HomePaths, homePaths } from '../../../common/paths.ts';

const DAY_MS = 86_400_000;
const nowMs = Date.now();

let issued: string;
let corporate: Awaited<ReturnType<typeof issue>>;
let dir: string;
let paths: HomePaths;
let formerUmask: number;

beforeAll(async () => {
  const home = homePaths(mkdtempSync(path.join(os.tmpdir(), 'comet-certs-')));
  await ensureCerts(home, { nowMs, userExtraCaFile: null });
  issued = home.certsDir;
  corporate = await issue('corp.example', nowMs);
});

afterAll(() => rmSync(path.dirname(issued), { recursive: true, force: true }));

beforeEach(() => {
  formerUmask = process.umask(0o022);
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-certs-'));
  paths = homePaths(path.join(dir, 'home'));
});

afterEach(() => {
  process.umask(formerUmask);
  rmSync(dir, { recursive: true, force: true });
});

const at = (name: string): string => path.join(paths.certsDir, name);
const ensure = (ms = nowMs, userExtraCaFile: string | null = null) =>
  ensureCerts(paths, { nowMs: ms, userExtraCaFile });
/** A generation that was issued at `nowMs`. */
async function existing(userExtraCaFile: string | null = null): Promise<Certs> {
  cpSync(issued, paths.certsDir, { recursive: true });
  return await ensure(nowMs, userExtraCaFile);
}
const rootsIn = (file: string): string[] =>
  (readFileSync(file, 'utf8').match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).map(
    (pem) => new X509Certificate(pem).fingerprint256,
  );

/** A certificate of the user's own, in a file. */
function userCa(name: string): { readonly file: string; readonly fingerprint: string } {
  const file = path.join(dir, name);
  const { rootPem } = corporate;
  writeFileSync(file, `# corporate\n${rootPem}`);
  return { file, fingerprint: new X509Certificate(rootPem).fingerprint256 };
}

describe('ensureCerts', () => {
  it('makes everything private, and leaves no key of the root and no temporary directory', async () => {
    const certs = await ensure();
    expect(certs.change).toBe('issued');
    expect(readdirSync(paths.certsDir).sort()).toEqual([
      'bundle.json',
      'bundle.pem',
      'leaf.key',
      'leaf.pem',
      'root.pem',
    ]);
    expect(readdirSync(paths.home)).toEqual(['certs']);
    expect(statSync(paths.certsDir).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(paths.certsDir)) expect(statSync(at(name)).mode & 0o777, name).toBe(0o600);
    const root = new X509Certificate(readFileSync(at('root.pem')));
    expect(certs.fingerprint).toBe(root.fingerprint256);
    const keys = readdirSync(paths.certsDir).filter((name) => readFileSync(at(name), 'utf8').includes('PRIVATE KEY'));
    expect(keys).toEqual(['leaf.key']);
  });

  it('keeps what is good, byte for byte', async () => {
    await existing();
    const before = readFileSync(at('leaf.pem'), 'utf8');
    expect((await ensure(nowMs + 300 * DAY_MS)).change).toBe('kept');
    expect(readFileSync(at('leaf.pem'), 'utf8')).toBe(before);
    expect(existsSync(at('next'))).toBe(false);
  });

  it('lets racing first uses and racing renewals agree on one generation', async () => {
    const first = await Promise.all(Array.from({ length: 6 }, () => ensure()));
    expect(new Set(first.map((certs) => certs.fingerprint)).size).toBe(1);
    const later = nowMs + 400 * DAY_MS;
    const second = await Promise.all(Array.from({ length: 6 }, () => ensure(later)));
    expect(new Set(second.map((certs) => certs.fingerprint)).size).toBe(1);
    expect(loadLeaf(paths, later).kind).toBe('usable');
    expect(readdirSync(paths.home)).toEqual(['certs']);
  });

  it('leaves the files that another process is writing', async () => {
    const fresh = `${paths.certsDir}.0123456789ab.tmp`;
    mkdirSync(fresh, { recursive: true });
    await ensure(nowMs + 400 * DAY_MS);
    expect(existsSync(fresh)).toBe(true);
  });

  it('publishes the next root a month ahead, and serves its leaf on the last day', async () => {
    const first = await existing();
    const late = nowMs + 370 * DAY_MS;
    expect((await ensure(late)).change).toBe('kept');
    const roots = rootsIn(at('bundle.pem'));
    expect(roots).toHaveLength(2);
    expect(roots[0]).toBe(first.fingerprint);
    expect((await ensure(late + DAY_MS)).change).toBe('kept');
    expect(rootsIn(at('bundle.pem'))).toEqual(roots);
    const lastDay = first.notAfterMs - DAY_MS / 2;
    const renewed = await ensure(lastDay);
    expect(renewed).toMatchObject({ change: 'renewed', fingerprint: roots[1] });
    expect(loadLeaf(paths, lastDay).kind).toBe('usable');
    expect(rootsIn(at('bundle.pem'))).toEqual([roots[1]]);
  });

  it('replaces an expired leaf', async () => {
    const first = await existing();
    const later = first.notAfterMs + DAY_MS;
    expect(loadLeaf(paths, later)).toMatchObject({ kind: 'refused', reason: 'expired' });
    const second = await ensure(later);
    expect(second.change).toBe('issued');
    expect(second.fingerprint).not.toBe(first.fingerprint);
    expect(loadLeaf(paths, later).kind).toBe('usable');
  });

  it('replaces nothing that others may have touched, and says so', async () => {
    await existing();
    for (const opened of [at('leaf.key'), paths.certsDir]) {
      chmodSync(opened, 0o777);
      const message = expect.stringContaining(`(open_mode): remove ${paths.certsDir}, then`);
      await expect(ensure()).rejects.toMatchObject({ code: 'unsafe_file', message });
      chmodSync(opened, 0o700);
    }
    await removeCerts(paths);
    await existing();
    expect(loadLeaf(paths, nowMs).kind).toBe('usable');
  });

  it('does not burn a generation when the clock was set back', async () => {
    await existing();
    await expect(ensure(nowMs - 365 * DAY_MS)).rejects.toThrow(/clock/);
    expect(loadLeaf(paths, nowMs).kind).toBe('usable');
  });
});

describe('the leaf', () => {
  it.each([
    ['missing key', 'missing', () => unlinkSync(at('leaf.key'))],
    ['missing root', 'missing', () => unlinkSync(at('root.pem'))],
    ['world-readable key', 'open_mode', () => chmodSync(at('leaf.key'), 0o644)],
    ['group-readable certificate', 'open_mode', () => chmodSync(at('leaf.pem'), 0o640)],
    ['directory others may write', 'open_mode', () => chmodSync(paths.certsDir, 0o777)],
    [
      'key behind a link',
      'symlink',
      () => {
        renameSync(at('leaf.key'), path.join(dir, 'k'));
        symlinkSync(path.join(dir, 'k'), at('leaf.key'));
      },
    ],
    [
      'bundle behind a link',
      'symlink',
      () => {
        renameSync(at('bundle.pem'), path.join(dir, 'b'));
        symlinkSync(path.join(dir, 'b'), at('bundle.pem'));
      },
    ],
    [
      'directory behind a link',
      'symlink',
      () => {
        renameSync(paths.certsDir, path.join(dir, 'c'));
        symlinkSync(path.join(dir, 'c'), paths.certsDir);
      },
    ],
    [
      'directory for a key',
      'not_a_file',
      () => {
        unlinkSync(at('leaf.key'));
        mkdirSync(at('leaf.key'));
      },
    ],
    ['truncated certificate', 'damaged', () => writeFileSync(at('leaf.pem'), '-----BEGIN CERTIFICATE-----\nMIIB')],
  ] as const)('is not served with a %s', async (_, reason, spoil) => {
    await existing();
    spoil();
    expect(loadLeaf(paths, nowMs)).toMatchObject({ kind: 'refused', reason });
  });

  it('is not served with the key or the root of another generation', async () => {
    await existing();
    const other = await issue('api.anthropic.com', nowMs);
    const root = readFileSync(at('root.pem'));
    writeFileSync(at('root.pem'), other.rootPem);
    expect(loadLeaf(paths, nowMs)).toMatchObject({ kind: 'refused', reason: 'damaged' });
    writeFileSync(at('root.pem'), root);
    writeFileSync(at('leaf.key'), other.leaf.keyPem);
    expect(loadLeaf(paths, nowMs)).toMatchObject({ kind: 'refused', reason: 'key_mismatch' });
  });

  it.runIf(process.getuid?.() === 0)('is not served when another user owns the key', async () => {
    await existing();
    const { chownSync } = await import('node:fs');
    chownSync(at('leaf.key'), 65_534, 65_534);
    expect(loadLeaf(paths, nowMs)).toMatchObject({ kind: 'refused', reason: 'foreign_owner' });
  });

  it('comes as files and as text', async () => {
    await existing();
    const key = readFileSync(at('leaf.key'), 'utf8');
    const leaf = { keyFile: at('leaf.key'), certFile: at('leaf.pem'), key };
    expect(loadLeaf(paths, nowMs)).toMatchObject({ kind: 'usable', leaf });
  });
});

describe('a crash', () => {
  it('while a generation is written leaves the old one', async () => {
    await existing();
    const before = readFileSync(at('leaf.pem'), 'utf8');
    const writes = publish(paths.certsDir, getGeneration(paths.certsDir), async (fresh) => {
      writeFileSync(path.join(fresh, 'leaf.key'), 'half');
      throw new Error('power cut');
    });
    await expect(writes).rejects.toThrow('power cut');
    expect(readFileSync(at('leaf.pem'), 'utf8')).toBe(before);
    expect(readdirSync(paths.home)).toEqual(['certs']);
  });

  it('between the two renames leaves no certificate, and the next use creates one and removes the remains', async () => {
    await existing();
    const old = `${paths.certsDir}.0123456789ab.old`;
    renameSync(paths.certsDir, old);
    const fresh = `${paths.certsDir}.0123456789ab.tmp`;
    cpSync(old, fresh, { recursive: true });
    for (const leftover of [old, fresh]) utimesSync(leftover, (nowMs - DAY_MS) / 1_000, (nowMs - DAY_MS) / 1_000);
    expect(loadLeaf(paths, nowMs)).toMatchObject({ kind: 'refused', reason: 'missing' });
    expect((await ensure()).change).toBe('issued');
    expect(readdirSync(paths.home)).toEqual(['certs']);
  });
});

describe('the bundle', () => {
  it("holds our root first and the user's own certificates after it, labelled", async () => {
    const own = userCa('corp.pem');
    const certs = await existing(own.file);
    expect(certs.bundle).toEqual({ file: at('bundle.pem'), userFile: own.file, problems: [] });
    expect(rootsIn(at('bundle.pem'))).toEqual([certs.fingerprint, own.fingerprint]);
    expect(readFileSync(at('bundle.pem'), 'utf8')).toContain(`# from ${own.file}`);
  });

  it('is not nested when the environment already names it, also through a link', async () => {
    const own = userCa('corp.pem');
    const certs = await existing(own.file);
    symlinkSync(at('bundle.pem'), path.join(dir, 'link.pem'));
    for (const named of [at('bundle.pem'), path.join(dir, 'link.pem'), null]) {
      expect((await ensure(nowMs, named)).bundle.userFile).toBe(own.file);
      expect(rootsIn(at('bundle.pem'))).toEqual([certs.fingerprint, own.fingerprint]);
    }
    expect(await userCaFile(paths)).toBe(own.file);
  });

  it("keeps the user's file through a new generation", async () => {
    const own = userCa('corp.pem');
    const first = await existing(own.file);
    const second = await ensure(first.notAfterMs + 1, null);
    expect(rootsIn(at('bundle.pem'))).toEqual([second.fingerprint, own.fingerprint]);
  });

  it('works without a file that is missing or empty, and reports it', async () => {
    const gone = path.join(dir, 'gone.pem');
    expect((await existing(gone)).bundle.problems).toEqual([expect.stringContaining('gone.pem')]);
    writeFileSync(gone, 'nothing');
    expect((await ensure(nowMs, gone)).bundle.problems).toEqual([expect.stringContaining('no PEM certificate')]);
    expect(rootsIn(at('bundle.pem'))).toHaveLength(1);
  });

  it('leaves out what does not parse and every private key, and keeps the rest', async () => {
    const own = userCa('corp.pem');
    const good = readFileSync(own.file, 'utf8');
    const { leaf } = corporate;
    writeFileSync(own.file, `-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n${leaf.keyPem}${good}`);
    const { bundle, fingerprint } = await existing(own.file);
    expect(bundle.problems).toEqual([expect.stringContaining('1 certificates do not parse')]);
    expect(rootsIn(at('bundle.pem'))).toEqual([fingerprint, own.fingerprint]);
    expect(readFileSync(at('bundle.pem'), 'utf8')).not.toContain('PRIVATE');
  });
});

it('removes all it wrote', async () => {
  await existing();
  expect(await removeCerts(paths)).toEqual([paths.certsDir]);
  expect(readdirSync(paths.home)).toEqual([]);
  expect(await removeCerts(paths)).toEqual([]);
});
