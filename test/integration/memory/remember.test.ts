import { expect, test } from 'vitest';
import { createLocalModel } from '../../../memory/compaction/rules-model.ts';
import { openOnDisk } from '../../helpers/disk-rig.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();

test('a note is found at once', async () => {
  const { memory } = await openOnDisk(await tempDir(), { llm: 'local', local: createLocalModel(), watch: null });
  try {
    for (const [at, name] of ['Wolfram', 'Adelheid', 'Kunibert'].entries()) {
      const { node } = await memory.imports.remember({
        text: `The captain of release ${at} is ${name}`,
        projectDir: '/p',
      });
      const [first] = await memory.recall.search(`who is captain of release ${at}: ${name}?`, {
        top: 1,
        projectDir: '/p',
      });
      expect(first?.node.node_id).toBe(node.node_id);
    }
  } finally {
    await memory.maintenance.close();
  }
});
