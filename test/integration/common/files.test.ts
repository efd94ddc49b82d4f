import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createExclusive,
  ensureDir,
  inspectPrivateFile,
  readFileIfPresent,
  readOrCreateSecret,
  readUtf8,
  replaceFile,
  writeFileAtomic,
  writeOutput,
} from '../../../common/files.ts';

const getMode = (file: string): number => statSync(file).mode & 0o777;

let dir: string;
let formerUmask: number;

beforeEach(() => {
  formerUmask = process.umask(0o022);
  dir = mkdtempSync(path.join(os.tmpdir(), 'comet-files-'));
});

afterEach(() => {
  process.umask(formerUmask);
  rmSync(dir, { recursive: true, force: true });
});

describe('ensureDir', () => {
  // Node's own recursive mkdir never ends there.
  it.skipIf(!existsSync('/proc/self'))('fails where a folder that exists says that it does not', async () => {
    const says = expect.stringContaining('cannot be created as a directory (ENOENT)');
    await expect(ensureDir('/proc/none/home')).rejects.toMatchObject({ code: 'unsafe_file', message: says });
  });

  it('makes the directory and its parents for us alone', async () => {
    await ensureDir(path.join(dir, 'a', 'b'));
    expect(getMode(path.join(dir, 'a'))).toBe(0o700);
    expect(getMode(path.join(dir, 'a', 'b'))).toBe(0o700);
  });

  it('makes a directory private that others could read', async () => {
    mkdirSync(path.join(dir, 'open'), { mode: 0o755 });
    await ensureDir(path.join(dir, 'open'));
    expect(getMode(path.join(dir, 'open'))).toBe(0o700);
  });

  it('refuses a shared directory rather than closing it for everyone', async () => {
    mkdirSync(path.join(dir, 'shared'));
    chmodSync(path.join(dir, 'shared'), 0o1777);
    await expect(ensureDir(path.join(dir, 'shared'))).rejects.toMatchObject({ code: 'unsafe_file' });
  });

  it('refuses a file in its place', async () => {
    writeFileSync(path.join(dir, 'file'), '');
    await expect(ensureDir(path.join(dir, 'file'))).rejects.toMatchObject({ code: 'unsafe_file' });
  });
});

describe('replaceFile', () => {
  it('writes only over what was read before, and leaves no other file', async () => {
    const file = path.join(dir, 'a');
    expect(await replaceFile(file, 'old', 'new')).toBe(false);
    expect(await replaceFile(file, null, 'old')).toBe(true);
    expect(await replaceFile(file, null, 'new')).toBe(false);
    expect(readFileSync(file, 'utf8')).toBe('old');
    expect(await replaceFile(file, 'old', 'new', { mode: 0o644 })).toBe(true);
    expect([readFileSync(file, 'utf8'), getMode(file), readdirSync(dir)]).toEqual(['new', 0o644, ['a']]);
  });

  it('loses nothing of what another writes to the file at any moment', async () => {
    const file = path.join(dir, 'a');
    const replaced = async (turns: number): Promise<boolean> => {
      writeFileSync(file, 'old');
      let running = true;
      const replacing = replaceFile(file, 'old', 'new').finally(() => {
        running = false;
      });
      for (let turn = 0; turn < turns && running; turn += 1) await new Promise(setImmediate);
      const ended = !running;
      writeFileSync(file, 'theirs');
      await replacing;
      expect(readFileSync(file, 'utf8')).toBe('theirs');
      return ended;
    };
    for (let round = 0; round < 20; round += 1) for (let turns = 0; !(await replaced(turns)); turns += 1);
  });
});

describe('writeFileAtomic', () => {
  it('replaces the content, is 0600 and leaves no other file', async () => {
    const file = path.join(dir, 'a');
    writeFileSync(file, 'old', { mode: 0o644 });
    await writeFileAtomic(file, 'new');
    expect(readFileSync(file, 'utf8')).toBe('new');
    expect(getMode(file)).toBe(0o600);
    expect(readdirSync(dir)).toEqual(['a']);
  });

  it('gives the mode that is asked for', async () => {
    await writeFileAtomic(path.join(dir, 'a'), 'x', { mode: 0o644 });
    expect(getMode(path.join(dir, 'a'))).toBe(0o644);
  });

  it('replaces a symlink itself, not what it points to', async () => {
    writeFileSync(path.join(dir, 'victim'), 'precious');
    symlinkSync(path.join(dir, 'victim'), path.join(dir, 'link'));
    await writeFileAtomic(path.join(dir, 'link'), 'new');
    expect(readFileSync(path.join(dir, 'victim'), 'utf8')).toBe('precious');
  });

  it('leaves the old file and nothing else when it fails', async () => {
    mkdirSync(path.join(dir, 'a'));
    writeFileSync(path.join(dir, 'a', 'inner'), 'x');
    await expect(writeFileAtomic(path.join(dir, 'a'), 'new')).rejects.toThrow();
    expect(readdirSync(dir)).toEqual(['a']);
  });
});

describe('createExclusive', () => {
  it('lets exactly one of many racers win', async () => {
    const file = path.join(dir, 'a');
    const won = await Promise.all(Array.from({ length: 20 }, (_, i) => createExclusive(file, `racer ${i}`)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect(readFileSync(file, 'utf8')).toBe(`racer ${won.indexOf(true)}`);
    expect(getMode(file)).toBe(0o600);
    expect(readdirSync(dir)).toEqual(['a']);
  });

  it('does not write through a dangling symlink', async () => {
    symlinkSync(path.join(dir, 'target'), path.join(dir, 'link'));
    expect(await createExclusive(path.join(dir, 'link'), 'x')).toBe(false);
    expect(readdirSync(dir)).toEqual(['link']);
  });
});

it('reads null where no file is, and throws for what is no file', async () => {
  expect(await readFileIfPresent(path.join(dir, 'none'))).toBeNull();
  await expect(readFileIfPresent(dir)).rejects.toMatchObject({
    code: 'unsafe_file',
    message: expect.stringContaining(dir),
  });
});

it('does not wait for a pipe, itself or behind a link', async () => {
  const [pipe, link] = [path.join(dir, 'pipe'), path.join(dir, 'link')];
  execFileSync('mkfifo', [pipe]);
  symlinkSync(pipe, link);
  for (const file of [pipe, link]) {
    const refused = { code: 'unsafe_file', message: `${file} is a pipe or device; a file was expected` };
    await expect(readFileIfPresent(file)).rejects.toMatchObject(refused);
    await expect(readUtf8(file)).rejects.toMatchObject(refused);
  }
});

it('distinguishes a private file from every other kind', async () => {
  const file = path.join(dir, 'a');
  expect(inspectPrivateFile(file)).toBe('missing');
  await createExclusive(file, 'x');
  expect(inspectPrivateFile(file)).toBeNull();
  symlinkSync(file, path.join(dir, 'link'));
  expect(inspectPrivateFile(path.join(dir, 'link'))).toBe('symlink');
  expect(inspectPrivateFile(dir)).toBe('not_a_file');
  chmodSync(file, 0o640);
  expect(inspectPrivateFile(file)).toBe('open_mode');
});

describe('an output that the user names', () => {
  it('is a new private file, or replaces one', async () => {
    const file = path.join(dir, 'out.md');
    for (const text of ['first', 'second']) {
      await writeOutput(file, text);
      expect({ text: readFileSync(file, 'utf8'), mode: getMode(file) }).toEqual({ text, mode: 0o600 });
    }
  });

  it.skipIf(process.platform === 'win32')('is written to where it is a pipe, which stays one', async () => {
    const pipe = path.join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [read] = await Promise.all([readFile(pipe, 'utf8'), writeOutput(pipe, 'all of it')]);
    expect(read).toBe('all of it');
    expect(statSync(pipe).isFIFO()).toBe(true);
  });
});

describe('a secret file', () => {
  const createSecret = () => randomBytes(32).toString('hex');

  it('is created once and private', async () => {
    const file = path.join(dir, 'home', 'secret');
    const secrets = await Promise.all([1, 2, 3].map(() => readOrCreateSecret(file, createSecret)));
    expect(secrets[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(secrets).size).toBe(1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('is refused when it is a link', async () => {
    const file = path.join(dir, 'secret');
    writeFileSync(path.join(dir, 'elsewhere'), '00', { mode: 0o600 });
    symlinkSync(path.join(dir, 'elsewhere'), file);
    await expect(readOrCreateSecret(file, createSecret)).rejects.toMatchObject({ code: 'unsafe_file' });
  });
});
