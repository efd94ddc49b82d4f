import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { createProjectOf, createSourceFiles, type SourceFiles } from '../../../../memory/storage/fs/project-files.ts';
import { type DiskRig, filesBelow, openOnDisk } from '../../../helpers/disk-rig.ts';
import type { RigOptions } from '../../../helpers/memory-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

interface Stage {
  readonly home: string;
  readonly shop: string;
  readonly start: (options?: RigOptions) => Promise<DiskRig>;
  readonly put: (file: string, text: string) => Promise<void>;
}

async function stage(): Promise<Stage> {
  const top = await tempDir();
  const shop = path.join(top, 'shop');
  const put = async (file: string, text: string): Promise<void> => {
    await mkdir(path.dirname(path.join(shop, file)), { recursive: true });
    await writeFile(path.join(shop, file), text);
  };
  await put('.git/config', '[remote "origin"]\n\turl = git@github.com:acme/shop.git\n');
  await put('.git/HEAD', `${'ab12'.repeat(10)}\n`);
  await put('src/db.ts', 'port 5433');
  await put('src/mail.ts', 'smtp');
  const start = async (options: RigOptions = {}): Promise<DiskRig> => {
    const rig = await openOnDisk(path.join(top, 'home'), {
      watch: null,
      sources: createSourceFiles({ now: Date.now }),
      // A busy machine takes its time; a disk that never answers is another matter.
      sourcePatience: 100,
      getProject: createProjectOf(() => 0),
      ...options,
    });
    open.push(rig.memory);
    return rig;
  };
  return { home: path.join(top, 'home'), shop, start, put };
}

const worked = (shop: string, prompt: string, file: string, answer: string, sessionId = 's1') =>
  getTurn(
    prompt,
    [
      ...toolRound('Edit', { file_path: path.join(shop, file), old_string: 'a', new_string: 'b' }, 'edited'),
      message('assistant', [{ type: 'text', text: answer }]),
    ],
    { projectDir: path.join(shop, 'src'), sessionId },
  );

async function remembered({ shop, start }: Stage): Promise<DiskRig> {
  const rig = await start();
  rig.memory.capture.captureTurns([
    worked(shop, 'Which port does the staging database take?', 'src/db.ts', 'It is 5433 now.'),
  ]);
  await rig.memory.maintenance.flush(60_000);
  rig.memory.capture.captureTurns([
    worked(shop, 'How is staging mail delivered?', 'src/mail.ts', 'By the smtp relay of staging.'),
  ]);
  await rig.memory.maintenance.flush(60_000);
  return rig;
}

test('a node keeps its files with digest and commit, in its markdown and in exports', async () => {
  const set = await stage();
  const { memory } = await remembered(set);
  const getLinks = (each: Memory): string[] => each.library.list({ all: true }).flatMap((node) => node.source_links);
  const links = getLinks(memory).sort();
  expect(links).toEqual([
    'file:src/db.ts#sha256=c4c845a7a903d5ea&commit=ab12ab12ab12',
    'file:src/mail.ts#sha256=4ae524ef0a54bc56&commit=ab12ab12ab12',
  ]);
  const files = await Promise.all(filesBelow(path.join(set.home, 'memory')).map((file) => readFile(file, 'utf8')));
  expect(files.join('\n')).toContain(`\nsource_links: ["${links[0]}"]`);
  const other = await stage();
  const { memory: importer } = await other.start();
  await importer.imports.importArchive(await memory.library.exportAll('md'));
  expect(getLinks(importer).sort()).toEqual(links);
});

test('when a file changes, search and recall say so and what did not change comes first', async () => {
  const set = await stage();
  const { memory } = await remembered(set);
  const before = await memory.recall.search('staging database port mail', { top: 2 });
  expect(before.map(({ changed }) => changed)).toEqual([undefined, undefined]);
  await set.put('src/db.ts', 'port 6000');
  const after = await memory.recall.search('staging database port mail', { top: 2 });
  const request = {
    sessionId: 's9',
    projectDir: set.shop,
    prompt: 'Which port does the staging database take?',
    recent: [],
    visibleTurns: new Set<string>(),
    shown: new Set<string>(),
  };
  const [hit] = await memory.recall.recall(request, new AbortController().signal);
  expect(hit?.changed).toEqual([{ path: 'src/db.ts', state: 'changed' }]);
  expect(hit?.line.text).toMatch(/ \[file changed since: src\/db\.ts\]$/);
  const getScore = (hits: typeof before, word: string): number =>
    hits.find(({ node }) => node.source_links[0]?.includes(word))?.score ?? 0;
  expect(getScore(after, 'db.ts')).toBeLessThan(getScore(before, 'db.ts'));
  expect(getScore(after, 'mail.ts')).toBe(getScore(before, 'mail.ts'));
  await rm(path.join(set.shop, 'src/mail.ts'));
  const [mail] = await memory.recall.search('staging mail relay', { top: 1 });
  expect(mail?.changed).toEqual([{ path: 'src/mail.ts', state: 'deleted' }]);
});

test('after a restart it is still known where the project is and what a waiting turn had seen', async () => {
  const set = await stage();
  const first = await set.start({ llm: 'off' });
  first.memory.capture.captureTurns([
    worked(set.shop, 'Which port does the staging database take?', 'src/db.ts', 'It is 5433 now.'),
  ]);
  await first.memory.maintenance.close();
  await set.put('src/db.ts', 'port 6000');
  const { memory } = await set.start();
  await memory.maintenance.flush(60_000);
  const [hit] = await memory.recall.search('staging database port', { top: 1 });
  expect(hit?.node.source_links[0]).toContain('c4c845a7a903d5ea');
  expect(hit?.changed).toEqual([{ path: 'src/db.ts', state: 'changed' }]);
});

test('a file can be asked about, with words or without, by folder, and after it is gone', async () => {
  const set = await stage();
  const { memory } = await remembered(set);
  const about = async (file: string, query = '', top = 5) =>
    (await memory.recall.search(query, { top, file: path.join(set.shop, file) })).map(({ node, anchored }) => [
      node.source_links[0]?.split('#')[0],
      anchored ?? false,
    ]);
  expect(await about('src/db.ts')).toEqual([['file:src/db.ts', true]]);
  expect((await about('src')).sort()).toEqual([
    ['file:src/db.ts', true],
    ['file:src/mail.ts', true],
  ]);
  expect((await about('.')).sort()).toEqual((await about('src')).sort());
  expect(await about('src/db.ts', 'staging mail relay')).toEqual([
    ['file:src/db.ts', true],
    ['file:src/mail.ts', false],
  ]);
  expect(await about('src/db.ts', 'staging mail relay', 1)).toEqual([['file:src/db.ts', true]]);
  await rm(path.join(set.shop, 'src'), { recursive: true });
  expect(await about('src/db.ts')).toEqual([['file:src/db.ts', true]]);
  expect(await about('src/none.ts')).toEqual([]);
  expect(await memory.recall.search('', { top: 5, file: '/elsewhere/a.ts' })).toEqual([]);
});

test('a disk that never answers keeps no turn and no recall waiting', async () => {
  const set = await stage();
  const { memory } = await remembered(set);
  await memory.maintenance.close();
  const hanging: SourceFiles = {
    ...createSourceFiles({ now: Date.now }),
    mark: () => new Promise(() => {}),
    compare: () => new Promise(() => {}),
  };
  const { memory: again } = await set.start({ sources: hanging, sourcePatience: 1 });
  again.capture.captureTurns([worked(set.shop, 'Where do invoices go?', 'src/db.ts', 'To the billing bucket.', 's2')]);
  expect(await again.maintenance.flush(60_000)).toBe(true);
  expect(again.library.list({ sessionId: 's2', all: true })[0]?.source_links).toEqual([]);
  expect((await again.recall.search('staging database port', { top: 1 }))[0]?.changed).toBeUndefined();
});
