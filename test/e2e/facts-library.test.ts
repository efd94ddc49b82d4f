import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { describe, expect, it, onTestFinished } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe.each([
  ['by rules', []],
  ['by a scripted model', ['--model']],
])('the museum example, %s', (_, args) => {
  it('loses a wish after four turns and the time with the visit, and keeps need and interest', async () => {
    const { stdout } = await execa('node', [path.join(root, 'docs/examples/museum/museum.js'), ...args]);
    const turns = [...stdout.matchAll(/^\d\. .*\n {3}(.*)$/gm)].map(([, held = '']) => held.replace(/ [\d.]+/g, ''));
    expect(turns).toEqual([
      'deaf',
      'deaf, photography',
      'deaf, photography, an hour, coffee',
      'deaf, photography, an hour, coffee',
      'deaf, photography, an hour, coffee',
      'deaf, an hour, photography',
      'deaf, an hour, photography',
    ]);
    const [guide, desk, next] = stdout.split(/^(?:The|On) .*:\n/m).slice(1);
    expect(guide).toMatch(/- Visitor\.Interest: "photography"\n- Visitor\.Need: "deaf"\n- Visitor\.Time: "an hour"/);
    expect(desk).toContain('"an hour"');
    expect(desk).not.toContain('Visitor.Need');
    expect(next).toMatch(/- Visitor\.Interest: "photography"\n- Visitor\.Need: "deaf"$/);
    expect(stdout.includes('dropped: unknownConcept 1, notSaid 1')).toBe(args.includes('--model'));
  });
});

it('a strict TypeScript program compiles against the declarations of the package', async () => {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'cc-facts-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  await mkdir(path.join(dir, 'node_modules'));
  await symlink(root, path.join(dir, 'node_modules/comet-cc'));
  await copyFile(path.join(root, 'test/fixtures/programs/facts-consumer.ts'), path.join(dir, 'consumer.ts'));
  await writeFile(path.join(dir, 'package.json'), '{"type":"module"}');
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022', '--listFiles'];
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = await execa('node', [tsc, ...options, 'consumer.ts'], { cwd: dir });
  expect(stdout).toContain('dist/types/memory/facts/index.d.ts');
});
