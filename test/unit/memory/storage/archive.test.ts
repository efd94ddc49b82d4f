import { expect, test } from 'vitest';
import { type Archive, scrubbed } from '../../../../memory/storage/archive.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const [GONE, KEPT] = ['mem_20261124_090000_0000aa', 'mem_20261124_090000_0000bb'] as const;

const getTask = (name: string, fields: string) => ({
  name: `active/${name}.md`,
  text: `---\ntitle: ${name}\ncreated: 2026-11-24\n${fields}---\n`,
});

test('an export gives back no task of memories that were removed, but every other one', () => {
  const archive: Archive = {
    nodes: [makeNode({ node_id: GONE, turns: ['t1'] }), makeNode({ node_id: KEPT, turns: ['t2'] })],
    briefs: [],
    tasks: [
      getTask('of-the-removed', `sources: [${GONE}]\n`),
      getTask('of-both', `sources: [${GONE}, ${KEPT}]\n`),
      getTask('of-the-other', `sources: [${KEPT}]\n`),
      getTask('typed', ''),
      { name: 'active/no-task.md', text: GONE },
    ],
  };
  const isRemoved = (turnId: string): boolean => turnId === 't1';
  const { nodes, tasks } = scrubbed(archive, isRemoved, () => false);
  expect(nodes.map(({ node_id }) => node_id)).toEqual([KEPT]);
  expect(tasks?.map(({ name }) => name)).toEqual([
    'active/of-both.md',
    'active/of-the-other.md',
    'active/typed.md',
    'active/no-task.md',
  ]);
  // What was imported with --again is there.
  const { tasks: all } = scrubbed(archive, isRemoved, (id) => id === GONE);
  expect(all).toHaveLength(5);
});
