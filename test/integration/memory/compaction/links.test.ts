import { afterEach, describe, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { openOnDisk } from '../../../helpers/disk-rig.ts';
import { createDisk, openRig, type RigOptions } from '../../../helpers/memory-rig.ts';
import { calmReading, oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const AT = 1_800_000_000_000;
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

async function onDisk(home?: string, options: RigOptions = {}): Promise<Memory> {
  const { memory } = await openOnDisk(home ?? (await tempDir()), { llm: 'local', watch: null, ...options });
  open.push(memory);
  return memory;
}

const about = (sessionId: string, text: string, at: number) =>
  talk(text, 'Noted.', { sessionId, atMs: AT + at * 86_400_000 });
const LEDGER = 'The ledger exporter writes the nightly ledger file to exports/ledger.csv and never twice.';
const AGAIN = 'The ledger exporter now writes the nightly ledger file exports/ledger.csv with a header.';
const FONTS = 'Label fonts are subset with pyftsubset before the thermal printer gets them.';

async function remember(memory: Memory, ...turns: ReturnType<typeof talk>[]): Promise<void> {
  for (const turn of turns) {
    memory.capture.captureTurns([turn]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
  }
}

const getLinks = (memory: Memory, sessionId: string) =>
  memory.library.list({ sessionId }).flatMap(({ links }) => links);
const getIds = (memory: Memory, sessionId: string) => memory.library.list({ sessionId }).map(({ node_id }) => node_id);

describe('a memory that is saved', () => {
  test('is linked with those about the same, both ways, over a restart, and not with others', async () => {
    const home = await tempDir();
    const memory = await onDisk(home);
    await remember(memory, about('s1', LEDGER, 0), about('s2', FONTS, 1), about('s3', AGAIN, 2));
    await memory.maintenance.close();
    const again = await onDisk(home);
    expect(getLinks(again, 's1')).toEqual(getIds(again, 's3'));
    expect(getLinks(again, 's3')).toEqual(getIds(again, 's1'));
    expect(getLinks(again, 's2')).toEqual([]);
  });

  test('is linked with nothing of another project', async () => {
    const memory = await onDisk();
    const elsewhere = talk(AGAIN, 'Noted.', { sessionId: 's9', projectDir: '/p/other', atMs: AT });
    await remember(memory, about('s1', LEDGER, 0), elsewhere);
    expect([...getLinks(memory, 's1'), ...getLinks(memory, 's9')]).toEqual([]);
  });

  test('has ten links at most, however many are like it', async () => {
    const memory = await onDisk();
    const alike = Array.from({ length: 14 }, (_, at) => about(`s${at}`, `${AGAIN} Take ${at}.`, at));
    await remember(memory, ...alike);
    for (const node of memory.library.list({})) {
      expect(node.links.length).toBeLessThanOrEqual(10);
      expect(new Set(node.links).size).toBe(node.links.length);
      expect(node.links).not.toContain(node.node_id);
    }
    expect(memory.library.list({ sessionId: 's13' })[0]?.links).toHaveLength(10);
  });
});

test('links of a draft do not keep the model’s node from taking its place', async () => {
  let answer: () => void = () => {};
  const model = scriptedModel({
    sense: () => calmReading,
    compact: (input) =>
      new Promise((resolve) => {
        answer = () => resolve(oneNode(input, `${AGAIN} (read by a model)`));
      }),
  });
  const memory = await openRig(createDisk(), { model, idleMs: 0 });
  open.push(memory);
  memory.capture.captureTurns([about('s1', LEDGER, 0)]);
  memory.capture.prepareNodes('s1', [about('s1', LEDGER, 0).turnId]);
  await expect.poll(() => model.compacted.length).toBe(1);
  answer();
  memory.capture.captureTurns([about('s2', AGAIN, 1)]);
  memory.capture.prepareNodes('s2', [about('s2', AGAIN, 1).turnId]);
  await expect.poll(() => model.compacted.length).toBe(2);
  await expect.poll(() => getLinks(memory, 's2')).toEqual(getIds(memory, 's1'));
  answer();
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  expect(memory.library.list({ sessionId: 's2' })[0]).toMatchObject({ author: { by: 'model', model: 'scripted' } });
  expect(getLinks(memory, 's1')).toEqual(getIds(memory, 's2'));
});
