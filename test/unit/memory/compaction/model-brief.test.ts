import { expect, test } from 'vitest';
import { createModelBriefs } from '../../../../memory/compaction/model-brief.ts';
import type { StoredBrief } from '../../../../memory/model/node.ts';

test('the brief of a model is continued once, also where a claim rests on an earlier turn', async () => {
  let stored: StoredBrief | null = null;
  const nodeFiles = {
    readBrief: async () => stored,
    async writeBrief(brief: StoredBrief) {
      stored = brief;
    },
  };
  const parts = { nodeFiles, turnRegistry: { areAbandoned: () => false } };
  const briefs = createModelBriefs(parts as unknown as Parameters<typeof createModelBriefs>[0]);
  const claim = (text: string, ...sources: string[]) => ({ text, sources, origin: 'assistant' as const });
  const decided = claim('Decided: retry twice', 't0');
  const brief = { session_id: 's', project: '/shop', updated_at: '', active: [decided], hints: [] };
  const batch = {
    sessionId: 's',
    project: '/shop',
    turns: [{ turnId: 't1', atMs: 0, origin: 'user', user: '', parts: [] }],
  } as const;
  const byRules = [claim('Decided: log each try', 't0'), claim('Stands: it works', 't0'), claim('Done: it', 't1')];
  await briefs.write({ ...brief, active: [decided, ...byRules] }, { brief, batch });
  const shown = async (isLast = true) => (await briefs.readModels(batch, isLast)).map(({ text }) => text);
  expect(await shown()).toEqual(['Decided: retry twice', 'Decided: log each try']);
  const typed = claim('Open: ask Ada');
  await briefs.write({ ...brief, active: [typed, claim('Done: more', 't2')] });
  await briefs.keep({ ...brief, active: [claim('Decided: retry thrice', 't1')] }, batch);
  expect(await shown(false)).toEqual(['Decided: retry thrice']);
  expect(await shown()).toEqual(['Decided: retry thrice', 'Open: ask Ada', 'Done: more']);
  stored = { ...brief, active: [claim('Done: less', 't2')] };
  await briefs.keep({ ...brief, active: [claim('Decided: never retry', 't1')] }, batch);
  expect(await shown()).toEqual(['Done: less']);
  expect(await shown(false)).toEqual([]);
});
