import { expect, it } from 'vitest';
import { statsLines } from '../../../../../bin/commands/memory/overview.ts';

const SAVED = { saved_tokens: 0, net_saved: 0, usd: 0 };
const STATS = {
  ...{ nodes: 1, pinned: 0, drafts: 0, facts: 0, turns: 1, sessions: 1, projects: 1, oldest: null, newest: null },
  ...{ by_importance: {}, by_recall_mode: {}, by_origin: {}, by_writer: {}, tags: [], snapshots: 0, bytes: {} },
  ...{ index: { nodes: 1, rows: 2 }, savings: { week: SAVED, total: SAVED }, problems: 0 },
};
const getLines = (facts_dropped: Readonly<Record<string, number>>): string =>
  statsLines({ ...STATS, facts_dropped } as never, (_, text) => text).join('\n');

it('memory stats says how many facts of the model were dropped, and why', () => {
  expect(getLines({ notSaid: 2, unknownConcept: 1 })).toContain(
    'dropped    3 facts of the model since the start: not said in the turn 2, no such concept 1',
  );
  expect(getLines({})).not.toContain('dropped');
});
