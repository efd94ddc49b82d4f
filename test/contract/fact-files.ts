import { expect, test } from 'vitest';
import { DEFAULT_ONTOLOGY } from '../../memory/facts/default-ontology.ts';
import type { FactFiles } from '../../memory/storage/fact-files.ts';

/** What every FactFiles must keep; call it inside a describe block. */
export function factFilesContract(open: () => Promise<FactFiles>): void {
  test('has nothing at first, and the default ontology', async () => {
    const files = await open();
    expect(await files.texts()).toEqual(new Map());
    expect(await files.ontology('/home/dev/shop')).toEqual({ ontology: DEFAULT_ONTOLOGY, problems: [] });
    expect(await files.ontology('')).toBe(await files.ontology(''));
  });

  test('gives each scope a name of its own, the same each time', async () => {
    const files = await open();
    const names = ['', '/home/dev/shop', 'github.com/dev/till', '/home/dev/user'].map(files.getName);
    expect(new Set(names).size).toBe(4);
    expect(files.getName('/home/dev/shop')).toBe(names[1]);
    expect(files.getPath(names[1] as string)).toContain(names[1]);
  });

  test('changes a text only where it is as it was', async () => {
    const files = await open();
    const name = files.getName('/home/dev/shop');
    expect(await files.replace({ name, before: 'other', after: 'a' })).toBe(false);
    expect(await files.replace({ name, before: null, after: 'a' })).toBe(true);
    expect(await files.replace({ name, before: null, after: 'b' })).toBe(false);
    expect(await files.replace({ name, before: 'a', after: 'b' })).toBe(true);
    expect(await files.texts()).toEqual(new Map([[name, 'b']]));
    expect(await files.replace({ name, before: 'b', after: null })).toBe(true);
    expect(await files.texts()).toEqual(new Map());
  });
}
