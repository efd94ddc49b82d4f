import { expect, it } from 'vitest';
import { conceptRows } from '../../../ui/facts.ts';

const concept = (name: string, project = '') => ({ name, project });
const fact = (id: string, name: string, project = '') => ({ id, concept: name, project });

it('puts facts below their concept, and concepts without any last', () => {
  const rows = conceptRows(
    [concept('Person.Language'), concept('Project.Command'), concept('Shop.Carrier', 'shop')],
    [fact('f1', 'Project.Command', 'shop'), fact('f2', 'Project.Command'), fact('f3', 'Shop.Carrier', 'shop')],
  );
  expect(rows.map(({ key }) => key)).toEqual([
    ...[' Project.Command', 'f1', 'f2'],
    ...['shop Shop.Carrier', 'f3'],
    ' Person.Language',
  ]);
});

it('does not show a fact of another project below a concept that one project adds', () => {
  const rows = conceptRows([concept('Shop.Carrier', 'shop')], [fact('f1', 'Shop.Carrier', 'depot')]);
  expect(rows.map(({ kind }) => kind)).toEqual(['concept']);
});
