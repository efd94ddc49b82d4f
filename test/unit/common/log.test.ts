import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createTail } from '../../../bin/commands/log.ts';
import { byteSink, createLog, fileSink } from '../../../common/log.ts';
import { createRedactor } from '../../../redact/index.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const MB = 1024 * 1024;
const getSize = (dir: string): number =>
  readdirSync(dir).reduce((sum, name) => sum + statSync(path.join(dir, name)).size, 0);

it('a flood of errors keeps a log below 25 MB, private, without tokens, with the newest line', async () => {
  const dir = await tempDir();
  const file = path.join(dir, 'engine.log');
  const redactor = createRedactor({ markKey: Buffer.alloc(32) });
  const write = fileSink(file);
  let written = Promise.resolve();
  const log = createLog({
    level: 'info',
    process: 'engine',
    sink: (line) => {
      written = write(line);
    },
    redact: (line) => redactor.json(line),
    now: () => 0,
  });
  const bearer = `sk-ant-oat01-${'Ab3'.repeat(20)}`;
  const filler = 'trouble '.repeat(8_000);
  let largest = 0;
  for (let at = 0; at < 600; at += 1) {
    const why = at % 20 === 0 ? new Error(`Authorization: Bearer ${bearer}`) : undefined;
    if (why === undefined) await write(JSON.stringify({ at, filler }));
    else log.error('upstream failed', { at, why, authorization: `Bearer ${bearer}` });
    await written;
    if (at % 50 === 0) largest = Math.max(largest, getSize(dir));
  }
  log.error('the last');
  await written;
  expect(Math.max(largest, getSize(dir))).toBeLessThan(25 * MB);
  expect(readdirSync(dir).sort()).toEqual(['engine.log', ...[1, 2, 3, 4].map((at) => `engine.log.${at}`)]);
  for (const name of readdirSync(dir)) {
    expect(lstatSync(path.join(dir, name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(path.join(dir, name), 'utf8').includes(bearer)).toBe(false);
  }
  expect(readFileSync(file, 'utf8').trimEnd().split('\n').at(-1)).toContain('the last');
});

it('an error of JSON.parse is logged without the text that it quotes, as a cause too', () => {
  const lines: string[] = [];
  const log = createLog({
    level: 'info',
    process: 'p',
    sink: (line) => lines.push(line),
    redact: (line) => line,
    now: () => 0,
  });
  for (const text of ['{"key": hunter2hunter2}', 'hunter2', '{"a":1} hunter2hunter2', '"hunter2']) {
    try {
      JSON.parse(text);
    } catch (error) {
      log.error('not read', { error: new Error('the file is damaged', { cause: error }) });
    }
  }
  expect(lines).toHaveLength(4);
  expect(lines.join('\n')).not.toContain('hunter');
  expect(lines[0]).toContain("Unexpected token 'h'");
});

it('lines are whole in every file, and a line beyond all bounds is cut', async () => {
  const dir = await tempDir();
  const write = fileSink(path.join(dir, 'a.log'), { fileBytes: 1_000, files: 3 });
  for (let at = 0; at < 100; at += 1) await write(`line ${at} ${'x'.repeat(at)}`);
  await write('y'.repeat(100_000));
  const names = readdirSync(dir);
  expect(names).toHaveLength(3);
  for (const name of names) {
    const text = readFileSync(path.join(dir, name), 'utf8');
    expect(text.length).toBeLessThan(1_100);
    for (const line of text.trimEnd().split('\n')) expect(line).toMatch(/^(line \d+ x*|y+…)$/);
  }
});

it('continues when its file is removed or renamed or its folder is missing for a while, and follows no link', async () => {
  const dir = path.join(await tempDir(), 'logs');
  mkdirSync(dir);
  const file = path.join(dir, 'a.log');
  const write = fileSink(file, { fileBytes: 1_000, files: 3 });
  await write('one');
  rmSync(file);
  await write('two');
  renameSync(file, `${file}.9`);
  await write('three');
  expect(readFileSync(file, 'utf8')).toBe('three\n');
  rmSync(dir, { recursive: true });
  await write('lost');
  mkdirSync(dir);
  symlinkSync(path.join(dir, 'elsewhere'), file);
  await write('nowhere');
  expect(existsSync(path.join(dir, 'elsewhere'))).toBe(false);
  rmSync(file);
  await write('four');
  chmodSync(file, 0o644);
  await write('five');
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('does not wait for the disk, and writes what is left as the process exits', async () => {
  const file = path.join(await tempDir(), 'a.log');
  const write = fileSink(file);
  const written = write('one');
  void write('two');
  expect(existsSync(file)).toBe(false);
  await written;
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo\n');
  const last = write('three');
  (process.listeners('exit').at(-1) as () => void)();
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo\nthree\n');
  await last;
});

it('keeps its bound where a file cannot be put aside', async () => {
  const dir = await tempDir();
  const file = path.join(dir, 'a.log');
  mkdirSync(path.join(dir, 'a.log.1', 'in the way'), { recursive: true });
  mkdirSync(path.join(dir, 'a.log.2', 'in the way'), { recursive: true });
  const write = fileSink(file, { fileBytes: 1_000, files: 3 });
  for (let at = 0; at < 100; at += 1) await write(`line ${at} ${'x'.repeat(100)}`);
  expect(statSync(file).size).toBeLessThan(1_001);
  expect(readFileSync(file, 'utf8')).toContain('line 99');
});

it.skipIf(process.platform !== 'linux')('a full disk costs the line and nothing else', async () => {
  await byteSink('/dev/full')(Buffer.from('lost\n'));
});

it('a tail reads every line once over rotations, and continues when more was written than is kept', async () => {
  const dir = await tempDir();
  const file = path.join(dir, 'a.log');
  const write = fileSink(file, { fileBytes: 1_000, files: 5 });
  const tail = createTail(file);
  expect(await tail.read()).toEqual([]);
  const read: string[] = [];
  let written = 0;
  for (const batch of [1, 3, 30, 0, 25, 1]) {
    for (let at = 0; at < batch; at += 1) await write(`line ${written++} ${'x'.repeat(80)}`);
    read.push(...(await tail.read()));
  }
  expect(read.map((line) => Number(line.split(' ')[1]))).toEqual(Array.from({ length: written }, (_, at) => at));
  for (let at = 0; at < 500; at += 1) await write(`late ${at} ${'x'.repeat(80)}`);
  expect((await tail.read()).at(-1)).toContain('late 499');
  rmSync(dir, { recursive: true });
  expect(await tail.read()).toEqual([]);
  mkdirSync(dir);
  appendFileSync(file, 'anew\n');
  expect(await tail.read()).toEqual(['anew']);
});
