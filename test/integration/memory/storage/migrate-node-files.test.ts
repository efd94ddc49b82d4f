import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import { openSchema } from '../../../../engine/lifecycle/schema.ts';
import { parseArchive } from '../../../../memory/storage/archive.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { openSnapshotFiles } from '../../../../memory/storage/fs/snapshot-files.ts';
import { EARLIER_HOMES, unpackHome } from '../../../helpers/earlier-homes.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();

async function textsBelow(dir: string): Promise<Map<string, string>> {
  const names = (await readdir(dir, { recursive: true })).filter((name) => name.endsWith('.md')).sort();
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(path.join(dir, name), 'utf8')] as const)),
  );
}

async function unpacked(name: (typeof EARLIER_HOMES)[number] = 'd6206c7-rich') {
  const home = await tempDir();
  unpackHome(name, home);
  return homePaths(home);
}

test.each(EARLIER_HOMES)('%s: every node and brief reads the same after the upgrade', async (name) => {
  const paths = await unpacked(name);
  const files = async () => {
    const opened = await openNodeFiles(paths);
    const { nodes, problems } = await opened.load();
    return { nodes, briefs: await opened.briefs(), problems: problems.map(({ file }) => file) };
  };
  const before = await files();
  const upgrade = await openSchema(paths);
  expect(await files()).toEqual(before);
  expect(upgrade?.files).toBeGreaterThan(0);
  const stamp = JSON.parse(await readFile(path.join(paths.home, 'schema.json'), 'utf8'));
  expect(stamp).toEqual({ schema: 3, upgrade });
  expect(await openSchema(paths)).toBeNull();
});

test('the files as they were are kept, and what does not validate stays where it is', async () => {
  const paths = await unpacked();
  const before = await textsBelow(paths.nodesDir);
  const upgrade = await openSchema(paths);
  expect(await textsBelow(path.join(paths.memoryBackupDir, 'schema-1', 'nodes'))).toEqual(before);
  expect(upgrade?.kept).toBe(2);
  const after = await textsBelow(paths.nodesDir);
  const draft = [...before.keys()].find((name) => name.endsWith('draft.md')) as string;
  expect(after.get(draft)).toBe(before.get(draft));
  for (const text of after.values()) expect(text).not.toMatch(/^- (?:written_by|strength|content_key): /m);
  expect((await stat(paths.memoryBackupDir)).mode & 0o777).toBe(0o700);
});

test('a file that was edited after the upgrade is not written again', async () => {
  const paths = await unpacked();
  await openSchema(paths);
  const [name, text] = [...(await textsBelow(paths.nodesDir))].find(([, each]) => each.includes('```yaml')) as [
    string,
    string,
  ];
  const file = path.join(paths.nodesDir, name);
  const edited = text.replace('```yaml\n', '```yaml\n# my own remark\n');
  await writeFile(file, edited);
  await writeFile(path.join(paths.home, 'schema.json'), '{"schema":1}');
  await openSchema(paths);
  expect(await readFile(file, 'utf8')).toBe(edited);
});

test('a removed node is removed from the backup too', async () => {
  const paths = await unpacked();
  await openSchema(paths);
  const files = await openNodeFiles(paths);
  const [node] = (await files.load()).nodes.filter(({ turns }) => turns.length > 0);
  await files.remove([node?.node_id as string], node?.turns);
  const backup = [...(await textsBelow(paths.memoryBackupDir)).values()].join('\n');
  expect(backup).not.toContain(`## ${node?.node_id}`);
  for (const turnId of node?.turns ?? []) expect(backup).not.toContain(turnId);
  expect(backup).toContain('## mem_');
});

test('snapshots of the earlier version can be read', async () => {
  const paths = await unpacked();
  const snapshots = await openSnapshotFiles({ dir: paths.snapshotsDir, most: 20, now: () => 0, randomHex: () => '' });
  for (const { id } of await snapshots.list()) {
    const { nodes } = parseArchive(await snapshots.read(id));
    expect(nodes.every(({ kind, author }) => kind !== undefined && author !== undefined)).toBe(true);
  }
});
