import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import { openSchema } from '../../../../engine/lifecycle/schema.ts';
import { parseArchive } from '../../../../memory/storage/archive.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { openSnapshotFiles } from '../../../../memory/storage/fs/snapshot-files.ts';
import { EARLIER_HOMES, unpackHome } from '../../../helpers/earlier-homes.ts';
import { makeNode } from '../../../helpers/nodes.ts';
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
  expect(stamp).toEqual({ schema: 4, upgrade });
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

test('statements of nodes that the ontology names become facts, once, with their dates; the nodes stay as they are', async () => {
  const paths = await unpacked();
  const withoutFacts = async (): Promise<void> => {
    await rm(paths.factsDir, { recursive: true, force: true });
    await writeFile(path.join(paths.home, 'schema.json'), '{"schema":3}');
  };
  await openSchema(paths);
  await withoutFacts();
  const nodeFiles = await openNodeFiles(paths);
  const statement = (value: string, evidence: string) => ({
    ...{ concept: 'words of it', value, polarity: 'positive' as const, evidence: [evidence] },
    origin: 'user' as const,
  });
  const node = (id: string, day: string, value: string) =>
    makeNode({
      ...{ node_id: `mem_${day.replaceAll('-', '')}_101500_${id}`, session_id: id, project: '/home/dev/shop' },
      ...{ created_at: `${day}T10:15:00.000Z`, valid_from: `${day}T10:15:00.000Z`, turns: [`turn-${id}`] },
      facts: [statement(value, `turn-${id}`)],
    });
  await nodeFiles.save([
    node('00000a', '2026-03-01', 'We use Redis for the cache.'),
    node('00000b', '2026-03-02', 'We use Kafka for events.'),
    node('00000c', '2026-03-03', 'We no longer use redis.'),
    node('00000d', '2026-03-04', 'The lantern stands in the harbor.'),
  ]);
  const before = await textsBelow(paths.nodesDir);
  await openSchema(paths);
  expect(await textsBelow(paths.nodesDir)).toEqual(before);
  const facts = await textsBelow(paths.factsDir);
  const text = [...facts.values()].find((each) => each.includes('project: /home/dev/shop')) ?? '';
  expect(text).toMatch(/^- Project.Decision: Kafka for events .*\[from:: 2026-03-02T10:15:00.000Z\].*turn-00000b/m);
  expect(text).toMatch(/## Before\n\n- Project.Decision: Redis for the cache .*\[to:: 2026-03-03T/);
  expect(text).not.toContain('lantern');
  // As after a kill.
  await withoutFacts();
  await mkdir(`${paths.factsDir}-new`);
  await writeFile(path.join(`${paths.factsDir}-new`, 'user.md'), 'half a file');
  await openSchema(paths);
  expect(await textsBelow(paths.factsDir)).toEqual(facts);
});
