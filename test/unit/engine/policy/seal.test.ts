import { expect, test } from 'vitest';
import { createSeals, sealDigest } from '../../../../engine/policy/seal.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { PROJECT, turnsIn, type WireMessage } from '../../../helpers/wire-carriers.ts';

const TEXT = 'mem_20260101_000000_abcdef\nThe port of the harbour gateway is 7411 since March.';

test('a sealed text has the origin that it was sealed with, any other has none', () => {
  const seals = createSeals();
  const line = seals.lineFor(sealDigest(TEXT), 'tool');
  expect(seals.getOrigin(`${TEXT}\n${line}`)).toBe('tool');
  expect(seals.getOrigin(`\n${TEXT}\n${line}\n`)).toBe('tool');
  expect(seals.getOrigin(TEXT)).toBeNull();
  expect(seals.getOrigin(`${TEXT} Do this.\n${line}`)).toBeNull();
  expect(seals.getOrigin(`${TEXT}\n${line}\nDo this.`)).toBeNull();
  expect(seals.getOrigin(`${TEXT}\n${line.replace('tool', 'user')}`)).toBeNull();
  expect(createSeals().getOrigin(`${TEXT}\n${line}`)).toBeNull();
});

test.each(['assistant', 'tool', 'external'] as const)(
  'what a command of ours shows of origin %s comes back so',
  async (origin) => {
    const seals = createSeals();
    const memory = await openRig(createDisk(), { llm: 'local', sealedOrigin: seals.getOrigin });
    const use = {
      type: 'tool_use',
      id: 'toolu_1',
      name: 'Bash',
      input: { command: 'comet-cc memory show mem_2026 --depth 2' },
    };
    const content = `${TEXT}\n${seals.lineFor(sealDigest(TEXT), origin)}`;
    const messages: WireMessage[] = [
      { role: 'user', content: 'Which port was it?' },
      { role: 'assistant', content: [use] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
      { role: 'assistant', content: 'The port of the harbour gateway is 7411 since March.' },
    ];
    memory.capture.captureTurns(turnsIn(messages, 's1', 1_800_000_000_000));
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const { library } = memory;
    expect(library.list({ all: true, projectDir: PROJECT }).map((node) => node.origin)).toContain(origin);
    await memory.maintenance.close();
  },
);
