import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createLocalModel } from '../../../../memory/compaction/rules-model.ts';
import { languageModelContract } from '../../../contract/language-model.ts';
import { calmReading, oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';

languageModelContract('local', createLocalModel);
languageModelContract('scripted', () =>
  scriptedModel({
    sense: () => calmReading,
    compact: (input) => oneNode(input, 'the shop database'),
    detail: () => ({ sentences: ['It listens on port 5433.'] }),
  }),
);

it('has the first turn read in a third of the time once the rules are compiled', () => {
  const program = path.resolve('test/fixtures/programs/first-turn.mjs');
  const getCpuMs = (...args: string[]): number =>
    Number(execFileSync(process.execPath, [program, ...args], { encoding: 'utf8' }));
  let [compiled, uncompiled] = [getCpuMs('compiled'), getCpuMs()];
  // Other programs on the machine add to both.
  for (let again = 0; again < 2 && compiled >= uncompiled / 3; again += 1) {
    [compiled, uncompiled] = [Math.min(compiled, getCpuMs('compiled')), Math.min(uncompiled, getCpuMs())];
  }
  expect(compiled).toBeLessThan(uncompiled / 3);
});
