import { mkdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import type { FactFiles } from '../../../../memory/storage/fact-files.ts';
import { openFactFiles } from '../../../../memory/storage/fs/fact-files.ts';
import { allowOntology } from '../../../../memory/storage/fs/ontology-files.ts';
import { factFilesContract } from '../../../contract/fact-files.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const open = (home: string): Promise<FactFiles> => openFactFiles(homePaths(home), () => {});
const concept = (label: string, persistence_class = 'long_term') => ({
  label,
  persistence_class,
  salience_weight: 0.7,
});
const ontology = (concepts: object): string => JSON.stringify({ version: '0.2', concepts });
const PROJECT = '/home/dev/shop';

async function projectFile(dir: string, text: string): Promise<{ file: string; text: string }> {
  const file = path.join(dir, 'shop', '.comet-cc', 'ontology.json');
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  return { file, text };
}

describe('fact files on disk', () => {
  factFilesContract(async () => open(await tempDir()));

  it('are the user’s alone', async () => {
    const home = await tempDir();
    const files = await open(home);
    await files.replace({ name: 'user.md', before: null, after: 'x' });
    expect((await stat(files.getPath('user.md'))).mode & 0o777).toBe(0o600);
    expect((await stat(path.join(home, 'memory/facts'))).mode & 0o777).toBe(0o700);
    for (const name of ['../config.json', 'a/b.md', 'x.txt'])
      expect(await files.replace({ name, before: null, after: 'x' })).toBe(false);
  });
});

describe('ontologies', () => {
  it('of the user take the place of the default; one that is invalid declares nothing', async () => {
    const home = await tempDir();
    const files = await open(home);
    await writeFile(path.join(home, 'ontology.json'), ontology({ 'Guide.Taste': concept('what the visitor likes') }));
    expect(Object.keys((await files.ontology(PROJECT)).ontology.concepts)).toEqual(['Guide.Taste']);
    await writeFile(path.join(home, 'ontology.json'), ontology({ taste: concept('x') }));
    const { ontology: none, problems } = await files.ontology('');
    expect(none.concepts).toEqual({});
    expect(problems[0]?.message).toContain('concepts.taste');
  });

  it('of a project hold after consent, for that project, as they were allowed', async () => {
    const home = await tempDir();
    const files = await open(home);
    const names = async (project = PROJECT): Promise<string[]> =>
      Object.keys((await files.ontology(project)).ontology.concepts);
    const before = await names();
    const added = { 'Shop.Ware': concept('what is sold'), 'Project.Owner': concept('x', 'permanent') };
    const given = await projectFile(home, ontology({ ...added, 'Person.Secret': concept('y') }));
    expect(await names()).toEqual(before);
    await allowOntology(homePaths(home), PROJECT, given);
    expect(await names()).toEqual([...before, 'Shop.Ware']);
    expect(await names('/home/dev/till')).toEqual(before);
    expect(await names('')).toEqual(before);
    const { ontology: merged, problems } = await files.ontology(PROJECT);
    expect(merged.concepts['Project.Owner']?.persistence_class).toBe('long_term');
    expect(problems.map(({ message }) => message).join()).toMatch(/Person\.Secret.*Project\.Owner/);
    await projectFile(home, ontology({ 'Shop.Other': concept('z') }));
    expect(await names()).toEqual(before);
    expect((await files.ontology(PROJECT)).problems[0]?.message).toContain('comet-cc ontology allow');
  });
});
