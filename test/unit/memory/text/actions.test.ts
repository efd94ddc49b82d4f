import { expect, test } from 'vitest';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { callNodes, getActions } from '../../../../memory/text/actions.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { getTurn, toolRound } from '../../../helpers/turns.ts';

test('a memory of tool calls says what was called, and nothing that the memory above it says', () => {
  const calls = ['npm test', 'npm test', 'npm run lint', 'git push'].map((command, at) =>
    toolRound('Bash', { command }, 'ok', `toolu_${at}`),
  );
  const decided = { text: 'we deploy on Fridays', origin: 'user', turn: 't1' } as const;
  const parent = makeNode({
    title: 'Release',
    outcome: 'Version 4 is out.',
    decisions: [{ ...decided, by: 'user' }],
    open: [decided],
    values: ['4'],
    recall_mode: 'both',
    pinned_from: 'active',
  });
  const nodes = callNodes(parent, getActions([readTurn(getTurn('release it', calls.flat()))]), () => 'mem_x');
  expect(nodes.map(({ summary }) => summary)).toEqual([
    expect.stringMatching(/^ran npm test .*2/),
    'ran npm run lint',
    'ran git push',
  ]);
  for (const node of nodes) {
    expect(node).toMatchObject({ kind: 'tool', parent_node_id: parent.node_id, project: parent.project, facts: [] });
    expect(Object.keys(node)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:title|outcome|decisions|open|values|pinned_from)$/)]),
    );
  }
});
