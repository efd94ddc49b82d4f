import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { importFile } from '../../../engine/api/import-file.ts';
import type { Memory } from '../../../memory/index.ts';
import { type DiskRig, filesHolding, openOnDisk } from '../../helpers/disk-rig.ts';
import type { RigOptions } from '../../helpers/memory-rig.ts';
import { oneNode, scriptedModel } from '../../helpers/scripted-model.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';
import { talk } from '../../helpers/turns.ts';

const tempDir = tempDirs();
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

async function start(home: string, options: RigOptions = {}): Promise<DiskRig> {
  const rig = await openOnDisk(home, { watch: null, ...options });
  open.push(rig.memory);
  return rig;
}

const projectDir = '/home/dev/shop';
const filler = (topic: string) =>
  Array.from({ length: 30 }, (_, at) => `Step ${at} of ${topic} is checked by two people before it is done.`).join(' ');
const section = (title: string, fact: string) => `## ${title}\n\n${fact}\n\n${filler(title)}\n\n`;
const HANDBOOK = `# Handbook\n\n${[
  section('Gateway', 'The parcel gateway listens on port 7411 and nowhere else.'),
  section('Backups', 'Backups are kept in the vault named amberwort for ninety days.'),
  section('Releases', 'A release is announced by Ilse on Thursdays.'),
].join('')}`;

const request = (text: string, more: object = {}) => ({
  file: '/home/dev/shop/handbook.md',
  text,
  projectDir,
  ...more,
});

describe('an imported document', () => {
  test('goes when its import is rolled back, and stays when something before it is', async () => {
    const home = await tempDir();
    const { memory } = await start(home);
    memory.capture.captureTurns([talk('We decided to use pnpm, never npm.', 'Understood: pnpm only.')]);
    await memory.maintenance.flush(60_000);
    const [said] = memory.library.list({ all: true });
    await memory.library.edit(said?.node_id as string, { set: { importance: 'LOW' } });
    const { added } = await memory.imports.importDocument(request(HANDBOOK));
    const undo = async (reason: string) => {
      const snapshot = (await memory.maintenance.listSnapshots()).find((each) => each.reason === reason);
      return await memory.maintenance.rollback(snapshot?.id as string);
    };
    expect(await undo('edit')).toMatchObject({ restored: 1, removed: 0 });
    expect(await undo('import')).toMatchObject({ removed: added });
    expect(memory.library.list({ all: true })).toMatchObject([{ node_id: said?.node_id }]);
    expect(await memory.imports.importDocument(request(HANDBOOK))).toMatchObject({ added, skipped: 0 });
  });

  test('is found by what it says, in its own words, and is restored', async () => {
    const { memory } = await start(await tempDir());
    const report = await memory.imports.importDocument(request(HANDBOOK));
    expect(report).toMatchObject({ kind: 'document', added: report.chunks, unchanged: 0, outdated: 0, skipped: 0 });
    expect(report.chunks).toBeGreaterThan(2);
    await memory.maintenance.flush(60_000);
    const [hit] = await memory.recall.search('where are backups kept', { top: 3, projectDir });
    expect(hit?.line.text).toContain('amberwort');
    expect(hit?.node).toMatchObject({ origin: 'tool', kind: 'document', compaction_reason: 'external' });
    const asked = { sessionId: 's', projectDir, prompt: 'On which port does the parcel gateway listen?', recent: [] };
    const hits = await memory.recall.recall(
      { ...asked, visibleTurns: new Set(), shown: new Set() },
      AbortSignal.timeout(9_000),
    );
    expect(hits[0]?.line).toMatchObject({ origin: 'tool', text: expect.stringContaining('7411') });
    const restored = JSON.stringify(await memory.library.restoreSession(report.session_id));
    for (const fact of ['port 7411', 'amberwort', 'announced by Ilse']) expect(restored).toContain(fact);
    const { raw } = await memory.library.show(hit?.node.node_id ?? '', 2);
    expect(JSON.stringify(raw)).toContain('amberwort');
  });

  test('adds nothing the second time, after a restart, or under another name', async () => {
    const home = await tempDir();
    const first = await start(home);
    const { chunks } = await first.memory.imports.importDocument(request(HANDBOOK));
    const again = { added: 0, unchanged: chunks, outdated: 0, skipped: 0 };
    expect(await first.memory.imports.importDocument(request(HANDBOOK))).toMatchObject(again);
    await first.memory.maintenance.flush(60_000);
    await first.memory.maintenance.close();
    const { memory } = await start(home);
    expect(await memory.imports.importDocument(request(HANDBOOK))).toMatchObject(again);
    expect(await memory.imports.importDocument(request(HANDBOOK, { file: '/home/dev/copy.md' }))).toMatchObject(again);
    expect(memory.library.list({ all: true })).toHaveLength(chunks);
    expect(await memory.imports.importDocument(request(HANDBOOK, { projectDir: '/other' }))).toMatchObject({
      added: chunks,
    });
  });

  test('that was changed brings what is new and takes what it no longer says, raw text too', async () => {
    const home = await tempDir();
    const { memory } = await start(home);
    const { chunks } = await memory.imports.importDocument(request(HANDBOOK));
    const report = await memory.imports.importDocument(request(HANDBOOK.replace('Ilse', 'Tobias')));
    expect(report).toMatchObject({ chunks, added: report.outdated });
    expect(report.added).toBeGreaterThan(0);
    expect(report.added).toBeLessThan(chunks);
    await memory.maintenance.flush(60_000);
    expect((await memory.recall.search('who announces a release', { top: 1 }))[0]?.line.text).toContain('Tobias');
    expect(JSON.stringify(await memory.library.restoreSession(report.session_id))).not.toContain('Ilse');
    expect(filesHolding(path.join(home, 'index'), 'Ilse')).toEqual([]);
    expect((await memory.maintenance.listSnapshots())[0]).toMatchObject({ reason: 'import' });
  });

  test('asks no model, gives no brief, and comes before no other session’s', async () => {
    const model = scriptedModel({ compact: (input) => oneNode(input, 'pnpm') });
    const { memory } = await start(await tempDir(), { model });
    memory.capture.captureTurns([
      talk('We build the parcel service with pnpm 9 in src/build.', 'Noted.', { projectDir, sessionId: 'real' }),
    ]);
    await memory.maintenance.flush(60_000);
    const files = Array.from({ length: 7 }, (_, at) => request(`${HANDBOOK} ${at}`, { file: `/home/dev/${at}.md` }));
    for (const file of files) await memory.imports.importDocument(file);
    await memory.maintenance.flush(60_000);
    const standing = await memory.recall.sessionContext('new', projectDir);
    expect(standing.brief.join('\n')).toContain('pnpm');
    expect(JSON.stringify(standing.lines)).not.toContain('handbook');
    expect(model.compacted).toHaveLength(1);
  });

  test('that was being taken in when everything ended is taken in by the next import', async () => {
    const home = await tempDir();
    const { memory, nodeFiles } = await start(home);
    const broken = new Error('no room');
    const { save } = nodeFiles;
    nodeFiles.save = async () => {
      throw broken;
    };
    await expect(memory.imports.importDocument(request(HANDBOOK))).rejects.toBe(broken);
    expect(memory.maintenance.status().importing).toBeNull();
    nodeFiles.save = save;
    await memory.maintenance.close();
    const next = await start(home);
    await next.memory.maintenance.flush(60_000);
    expect(next.memory.library.list({ all: true })).toEqual([]);
    const report = await next.memory.imports.importDocument(request(HANDBOOK));
    expect(report).toMatchObject({ added: report.chunks });
    const texts = (await next.memory.library.restoreSession(report.session_id)).length;
    expect(texts).toBe(report.chunks);
  });

  test('leaves no trace once it is removed, and comes back only when asked for', async () => {
    const home = await tempDir();
    const { memory } = await start(home);
    await memory.imports.importDocument(request(HANDBOOK));
    await memory.maintenance.flush(60_000);
    // The end of a piece is the beginning of the next: both may say it.
    const gone: string[] = [];
    for (const { node_id } of memory.library.list({ all: true })) {
      if (JSON.stringify((await memory.library.show(node_id, 2)).raw).includes('amberwort')) gone.push(node_id);
    }
    await memory.library.remove(gone);
    await memory.maintenance.flush(60_000);
    expect(await memory.recall.search('amberwort', { top: 3 })).toEqual([]);
    expect(filesHolding(home, 'amberwort')).toEqual([]);
    expect(await memory.imports.importDocument(request(HANDBOOK))).toMatchObject({ added: 0, skipped: gone.length });
    expect(await memory.imports.importDocument(request(HANDBOOK, { again: true }))).toMatchObject({
      added: gone.length,
    });
  });

  test('is redacted before it is cut', async () => {
    const home = await tempDir();
    const { memory } = await start(home);
    const key = `sk-ant-api03-${'a1B2'.repeat(20)}`;
    const { session_id } = await memory.imports.importDocument(
      request(`${'word '.repeat(390)}${key} ${filler('keys')}`, { file: `/home/dev/shop/of-${key}.md` }),
    );
    await memory.maintenance.flush(60_000);
    expect(JSON.stringify(await memory.library.restoreSession(session_id))).toContain('[REDACTED:');
    expect(filesHolding(home, key.slice(0, 40))).toEqual([]);
  });
});

describe('a file to import', () => {
  test('is a document, and an export only where the user says so', async () => {
    const dir = await tempDir();
    const { memory } = await start(path.join(dir, 'home'));
    const file = async (name: string, content: string | Buffer): Promise<string> => {
      await writeFile(path.join(dir, name), content);
      return path.join(dir, name);
    };
    const text = await file('notes.txt', 'The parcel gateway listens on port 7411.');
    expect(await importFile(memory.imports, { file: text, projectDir })).toMatchObject({ kind: 'document', added: 1 });
    const exported = await file('all.md', await memory.library.exportAll('md'));
    expect(await importFile(memory.imports, { file: exported, as: 'export' })).toMatchObject({
      kind: 'nodes',
      unchanged: 1,
    });
    const damaged = await file('all.jsonl', '{"node": {}}\n');
    await expect(importFile(memory.imports, { file: damaged.replace('all.', 'none.') })).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(importFile(memory.imports, { file: text, as: 'nodes' })).rejects.toMatchObject({
      code: 'node_invalid',
    });
    await expect(importFile(memory.imports, { file: exported, projectDir })).rejects.toThrow(/with --as export/);
    expect(await importFile(memory.imports, { file: exported, as: 'document', projectDir })).toMatchObject({
      kind: 'document',
    });
    const binary = await file('image.bin', Buffer.from([0x89, 0x50, 0, 1, 2, 255]));
    await expect(importFile(memory.imports, { file: binary })).rejects.toThrow(/no text in UTF-8/);
    await expect(importFile(memory.imports, { file: dir })).rejects.toThrow(/is a folder/);
    for (const other of ['/dev/null', '/dev/zero'])
      await expect(importFile(memory.imports, { file: other })).rejects.toThrow(/is no file/);
    expect(await importFile(memory.imports, { file: await file('empty.md', ' \n') })).toMatchObject({
      chunks: 0,
      added: 0,
    });
  });
});
