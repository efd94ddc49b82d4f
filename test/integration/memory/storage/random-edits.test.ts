import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isRedirect } from '../../../../memory/model/node.ts';
import { contentDigest } from '../../../../memory/storage/index-writer.ts';
import { type DiskRig, filesBelow, openOnDisk } from '../../../helpers/disk-rig.ts';
import { createManualWatch, type ManualWatch } from '../../../helpers/manual-watch.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { applyEdit, randomEdit } from '../../../helpers/random-edits.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { readTexts } from '../../../helpers/text-files.ts';

const tempDir = tempDirs();
const first = [0, 1, 2].map((at) =>
  makeNode({ node_id: `mem_20260301_101500_00000${at}`, turns: [`end-${at}`], written_by: 'claude' }),
);

async function textsBelow(dir: string): Promise<Map<string, string>> {
  const files = filesBelow(dir).filter((file) => file.endsWith('.md'));
  return new Map(
    await Promise.all(files.map(async (file) => [path.relative(dir, file), await readFile(file, 'utf8')] as const)),
  );
}

/** Writes what differs, in place as editors do, and tells it as the watch would. */
async function write(dir: string, after: ReadonlyMap<string, string>, watch: ManualWatch): Promise<void> {
  const before = await textsBelow(dir);
  const touched: string[] = [];
  for (const file of before.keys()) {
    if (after.has(file)) continue;
    await rm(path.join(dir, file));
    touched.push(path.join(dir, file));
  }
  for (const [file, text] of after) {
    if (before.get(file) === text) continue;
    await mkdir(path.dirname(path.join(dir, file)), { recursive: true });
    await writeFile(path.join(dir, file), text);
    touched.push(path.join(dir, file));
  }
  watch.tell(touched);
}

async function expectAgreement({ memory, index, nodeFiles }: DiskRig, dir: string): Promise<void> {
  const { nodes } = readTexts(await textsBelow(dir));
  const live = nodes.filter((node) => !isRedirect(node));
  const byId = (some: readonly { readonly node_id: string }[]) => new Map(some.map((node) => [node.node_id, node]));
  expect(byId((await nodeFiles.load()).nodes)).toEqual(byId(nodes));
  expect(byId(memory.library.list({ all: true }))).toEqual(byId(live));
  const digests = new Map([...(await index.entries())].map(([id, { digest }]) => [id, digest]));
  expect(digests).toEqual(new Map(live.map((node) => [node.node_id, contentDigest(node)])));
}

test('hundreds of random edits on a real disk keep memory, index and files in agreement', async () => {
  let edits = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(randomEdit, { minLength: 15, maxLength: 15, size: 'max' }), async (made) => {
      const home = await tempDir();
      const nodesDir = path.join(home, 'memory', 'nodes');
      const watch = createManualWatch();
      const rig = await openOnDisk(home, { watch, llm: 'off' });
      try {
        await rig.nodeFiles.save(first);
        await rig.memory.maintenance.flush(60_000);
        const sound = [...(await textsBelow(nodesDir)).values()][0] as string;
        for (const [at, edit] of made.entries()) {
          const texts = applyEdit(await textsBelow(nodesDir), edit, sound);
          await write(nodesDir, new Map([...texts].map(([file, text]) => [file, Buffer.from(text).toString()])), watch);
          if (at % 4 === 3) await rig.memory.maintenance.flush(60_000);
          const [node] = rig.memory.library.list({ all: true });
          // Our own changes come in between.
          if (at % 4 === 3 && node !== undefined)
            await rig.memory.library.edit(node.node_id, { set: { importance: 'LOW' } });
          await rig.memory.maintenance.flush(60_000);
          await expectAgreement(rig, nodesDir);
          edits += 1;
        }
      } finally {
        await rig.memory.maintenance.close();
      }
      const again = await openOnDisk(home, { watch: null, llm: 'off' });
      await again.memory.maintenance.flush(60_000);
      await expectAgreement(again, nodesDir);
      await again.memory.maintenance.close();
    }),
    { numRuns: 20 },
  );
  expect(edits).toBeGreaterThanOrEqual(300);
});
