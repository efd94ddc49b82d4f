import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa, type Result } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Outcome } from '../../bin/demo/report.ts';
import { freePort } from '../helpers/cli.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Nothing else in the tests asks the internet, so what the machine trusts is kept for npm. */
const registryCerts = { NODE_EXTRA_CA_CERTS: process.env['COMET_TEST_EXTRA_CERTS'] };
const MAY_SHIP = [
  /^package\.json$/,
  /^(README|CHANGELOG)\.md$/,
  /^LICENSE$/,
  /^docs\/([\w-]+\/)*[\w-]+\.md$/,
  /^docs\/examples\/museum\/(museum\.js|ontology\.json)$/,
  /^docs\/ontology\.schema\.json$/,
  /^dist\/types\/memory\/facts\/[\w-]+\.d\.ts$/,
  /^dist\/memory\/embeddings\/data\/(static-table\.bin|NOTICE\.md|LICENSE-APACHE)$/,
  /^hooks\/\.claude-plugin\/marketplace\.json$/,
  /^hooks\/plugin\/((\.claude-plugin\/plugin|hooks\/hooks|\.mcp)\.json|launch\.mjs)$/,
  /^hooks\/plugin\/skills\/recall\/SKILL\.md$/,
  /^hooks\/plugin\/commands\/(status|why|todo|pause|forget-last)\.md$/,
  /^docs\/images\/[\w-]+\.png$/,
  /^dist\/ui\/(index\.html|licenses\.txt|assets\/[\w-]+\.(js|css))$/,
  /^dist\/bin\/demo\/story\.json$/,
  /^dist\/(bin|hooks|memory\/(embeddings|facts))\/[\w-]+\.js$/,
  /^dist\/chunks\/([\w-]+\.js|licenses\.md)$/,
];

let temp = '';
let user = '';
let tarball = '';
let paths: readonly string[] = [];

beforeAll(async () => {
  temp = await mkdtemp(path.join(os.tmpdir(), 'cc-pack-'));
  user = path.join(temp, 'u');
  await mkdir(user);
  // Without scripts: a build here would rewrite dist below the other tests.
  const { stdout } = await npm(['pack', '--ignore-scripts', '--json', '--pack-destination', temp], root);
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  tarball = path.join(temp, packed.filename);
  paths = packed.files.map((file) => file.path);
});

afterAll(async () => {
  await rm(temp, { recursive: true, force: true });
});

describe('the package', () => {
  it('ships what runs and its papers, and no source, test or build setting', () => {
    expect(paths.filter((file) => !MAY_SHIP.some((pattern) => pattern.test(file)))).toEqual([]);
    for (const file of ['LICENSE', 'README.md', 'CHANGELOG.md', 'docs/DEPENDENCIES.md']) expect(paths).toContain(file);
    for (const entry of ['bin/comet-cc', 'bin/guard', 'bin/engine']) expect(paths).toContain(`dist/${entry}.js`);
    for (const file of ['dist/memory/facts/index.js', 'dist/types/memory/facts/index.d.ts'])
      expect(paths).toContain(file);
    for (const file of ['static-table.bin', 'NOTICE.md', 'LICENSE-APACHE']) {
      expect(paths).toContain(`dist/memory/embeddings/data/${file}`);
    }
  });

  // While Node 20 loads other modules, the names of an imported CommonJS package may stay undefined.
  it('imports no package, but requires those that it does not hold', async () => {
    const programs = paths.filter((file) => /^dist\/(?!ui\/).*\.js$/.test(file));
    const texts = await Promise.all(programs.map((file) => readFile(path.join(root, file), 'utf8')));
    const named = texts.flatMap((text) => [...text.matchAll(/(?:^import\b[^"]* |\bimport\()"([^"./][^"]*)"/gm)]);
    expect(named.length).toBeGreaterThan(50);
    expect(named.map(([, name = '']) => name).filter((name) => !isBuiltin(name))).toEqual([]);
    expect(texts.filter((text) => text.includes('load("@lancedb/lancedb")'))).toHaveLength(2);
  });

  it('names no file of a source map and no folder of the machine it was built on', async () => {
    const texts = await Promise.all(paths.map((file) => readFile(path.join(root, file), 'utf8')));
    const telling = paths.filter((_, at) => texts[at]?.includes(root) || texts[at]?.includes('sourceMappingURL='));
    expect(telling).toEqual([]);
  });
});

// The dependencies come from the npm registry, so this one test is left out where none answers.
describe.skipIf(!(await registryAnswers()))('the package, installed globally', () => {
  it('runs, shows its demo, and leaves nothing but its home when it is taken away', { timeout: 240_000 }, async () => {
    const prefix = path.join(temp, 'prefix');
    await npm(['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', tarball]);
    const bin = path.join(prefix, 'bin', 'comet-cc');
    expect((await stat(bin)).mode & 0o111).toBe(0o111);
    expect(await readFile(bin, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);

    const own = await ownEnvironment();
    const run = (...args: string[]): Promise<Result> => execa(bin, args, { ...own, reject: false });
    expect(await run('--version')).toMatchObject({ exitCode: 0, stdout: await versionHere() });
    expect(await run('status')).toMatchObject({ exitCode: 3, stdout: '' });
    const demo = await run('demo', '--json');
    expect(demo).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(String(demo.stdout)) as Outcome).toMatchObject({ ok: true, refused: 0 });
    const env = JSON.parse(String((await run('env', '--shell', 'json')).stdout)) as Record<string, string>;
    expect(env['NODE_EXTRA_CA_CERTS']).toBe(path.join(user, '.comet-cc/certs/bundle.pem'));
    expect(existsSync(env['NODE_EXTRA_CA_CERTS'] as string)).toBe(true);

    await npm(['uninstall', '--global', '--prefix', prefix, 'comet-cc']);
    expect(await filesBelow(prefix)).toEqual([]);
    expect(await readdir(user)).toEqual(['.comet-cc', 't']);
    expect(await readdir(path.join(user, 't'))).toEqual([]);
  });
});

function npm(args: readonly string[], cwd = os.tmpdir()): Promise<{ stdout: string }> {
  return execa('npm', args, { cwd, env: registryCerts });
}

async function registryAnswers(): Promise<boolean> {
  const asked = ['view', 'commander', 'version', '--fetch-retries=0', '--fetch-timeout=5000'];
  return (await execa('npm', asked, { env: registryCerts, reject: false, timeout: 15_000 })).exitCode === 0;
}

/** A user of whom nothing is set but where the programs are. */
async function ownEnvironment() {
  const tmp = path.join(user, 't');
  await mkdir(tmp);
  const env = { PATH: process.env['PATH'], HOME: user, TMPDIR: tmp, COMET_CC_PORT: String(await freePort()) };
  return { env, extendEnv: false, cwd: user };
}

async function versionHere(): Promise<string> {
  return (JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string }).version;
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => path.join(entry.parentPath, entry.name));
}
