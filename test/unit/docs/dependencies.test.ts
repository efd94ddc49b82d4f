import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('docs/DEPENDENCIES.md lists the dependencies of package.json, at their versions, and no other', () => {
  const { dependencies } = JSON.parse(text('package.json')) as { dependencies: Record<string, string> };
  const rows = text('docs/DEPENDENCIES.md').matchAll(/^\| (\S+) \| (\d\S*) \| (.+?) \|/gm);
  expect(Object.fromEntries([...rows].map(([, name, version]) => [name, version]))).toEqual(dependencies);
});

function text(file: string): string {
  return readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
}
