import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const STATIC = /^(?:import|export) (?!type )(?:[^;]*? from )?'([^']+)';/gms;

/** Packages and built-in modules that are loaded before the first line of these files runs. */
function loadedBy(...entries: readonly string[]): Set<string> {
  const [outside, seen] = [new Set<string>(), new Set<string>()];
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(STATIC)) {
      if (name.startsWith('.')) visit(path.resolve(path.dirname(file), name));
      else outside.add(name);
    }
  };
  for (const entry of entries) visit(path.resolve(entry));
  return outside;
}

/** What Claude Code waits for must be there at once: each of the others takes as long as these together. */
const LIGHT = ['node:events', 'node:fs', 'node:fs/promises', 'node:net', 'node:os', 'node:path', 'node:util'];

test.each(['session-start', 'user-prompt-submit', 'compact', 'session-end', 'subagents'])(
  'the hook %s loads little',
  (hook) => {
    expect([...loadedBy(`hooks/${hook}.ts`)].filter((name) => !LIGHT.includes(name))).toEqual([]);
  },
);

test('the statusline loads little', () => {
  const loaded = [...loadedBy('bin/comet-cc.ts', 'bin/terminal/statusline.ts')];
  expect(loaded.filter((name) => !LIGHT.includes(name))).toEqual([]);
  expect(loaded).toContain('node:net');
});

test('status loads neither a schema nor tables of widths', () => {
  const loaded = loadedBy('bin/program.ts', 'bin/commands/status.ts');
  for (const heavy of ['zod', 'string-width', 'node:http', 'node:crypto']) expect(loaded).not.toContain(heavy);
  expect(loaded).toContain('commander');
});

test.each([
  'cost',
  'explain',
  'facts',
  'items',
  'library',
  'maintenance',
  'memory',
  'project',
  'session',
  'share',
  'start',
  'task',
])('the commands of %s load no schema', (file) => {
  const loaded = loadedBy('bin/program.ts', `bin/commands/${file}.ts`);
  for (const heavy of ['zod', 'yaml', 'execa']) expect(loaded).not.toContain(heavy);
  expect(loaded).toContain('commander');
});

test('the MCP server loads nothing of the store', () => {
  const loaded = loadedBy('bin/commands/mcp.ts', 'engine/mcp/index.ts');
  expect(loaded).not.toContain('yaml');
  expect(loaded).toContain('zod');
});

test('the engine loads what runs other programs only when it runs one', () => {
  const loaded = loadedBy('bin/engine.ts', 'engine/compose.ts', 'memory/memory.ts');
  expect(loaded).not.toContain('execa');
  expect(loaded).toContain('zod');
});
