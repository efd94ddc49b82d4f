import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createContext } from '../../../../bin/context.ts';
import { runProgram } from '../../../../bin/program.ts';

let home: string;
let stdout: string;
let stderr: string;

beforeEach(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), 'comet-config-'));
  [stdout, stderr] = ['', ''];
});

afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

async function run(args: readonly string[], variables: Record<string, string> = {}): Promise<number> {
  const env = { COMET_CC_HOME: home, ...variables };
  const out = { write: (text: string) => (stdout += text) };
  const err = { write: (text: string) => (stderr += text) };
  return runProgram(['node', 'comet-cc', ...args], createContext({ env, stdout: out, stderr: err }));
}

it('prints every key with its value, default and source as JSON, without a home', async () => {
  await rm(home, { recursive: true });
  expect(await run(['config', '--json'], { COMET_CC_PORT: '9000' })).toBe(0);
  const keys = JSON.parse(stdout) as Record<string, unknown>;
  expect(keys['port']).toMatchObject({ value: 9000, default: 8443, source: 'environment' });
  expect(keys['trim.mode']).toMatchObject({ value: 'auto', default: 'auto', source: 'default' });
});

it('prints only the keys that differ from their defaults, unless all are asked for', async () => {
  await run(['config', 'set', 'trim.mode', 'gentle']);
  await run(['config']);
  expect(stdout.match(/^\S+/gm)).toEqual(['KEY', 'trim.mode']);
  await run(['config', '--all']);
  expect(stdout).toContain('COMET_CC_RECALL_MAX_RESULTS');
});

it('sets a key and says when the environment overrides it', async () => {
  expect(await run(['config', 'set', 'port', '9001'], { COMET_CC_PORT: '9000' })).toBe(0);
  expect(stderr).toContain('COMET_CC_PORT is set in the environment');
  expect(JSON.parse(await readFile(path.join(home, 'config.json'), 'utf8'))).toEqual({ port: 9001 });
  await run(['config', 'get', 'port']);
  expect(stdout).toBe('9001\n');
});

it('lists the address of a proxy without its password', async () => {
  const proxy = 'http://ada:s3cret@proxy.example:3128';
  await run(['config', '--json'], { COMET_CC_UPSTREAM_PROXY: proxy });
  await run(['config'], { COMET_CC_UPSTREAM_PROXY: proxy });
  expect(stdout).not.toContain('s3cret');
  expect(stdout.match(/http:\/\/…@proxy\.example:3128/g)).toHaveLength(2);
  await run(['config', 'get', 'upstreamProxy'], { COMET_CC_UPSTREAM_PROXY: proxy });
  expect(stdout).toContain(proxy);
});

it('lets no command of Claude change where requests go', async () => {
  expect(await run(['config', 'set', 'upstream', 'https://evil.example'], { CLAUDECODE: '1' })).toBe(2);
  expect(stderr).toContain('run it in your own terminal');
  await expect(readFile(path.join(home, 'config.json'), 'utf8')).rejects.toMatchObject({ code: 'ENOENT' });
});

it('refuses an unknown key as wrong usage', async () => {
  expect(await run(['config', 'set', 'nothing', '1'])).toBe(2);
  expect(stderr).toContain('comet-cc config --all');
});

it('blames the file, not the value, where another key in it is wrong', async () => {
  await mkdir(home, { recursive: true });
  await writeFile(path.join(home, 'config.json'), '{"prot":1}');
  expect(await run(['config', 'set', 'port', '9001'])).toBe(1);
  expect(stderr).toContain('prot: no such key');
});

it.each(['abc', ''])('says what a number key expects where it is set to "%s", and writes nothing', async (text) => {
  expect(await run(['config', 'set', 'port', text])).toBe(2);
  const problem = 'port: expected number, received string';
  expect(stderr).toBe(`comet-cc: config.json with port=${text} does not validate: ${problem}\n`);
  await expect(readFile(path.join(home, 'config.json'))).rejects.toThrow('ENOENT');
});
