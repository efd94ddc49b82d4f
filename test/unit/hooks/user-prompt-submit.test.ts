import { expect, it } from 'vitest';
import { Config } from '../../../common/config.ts';
import { silentLog } from '../../../common/log.ts';
import { createHookHandlers } from '../../../engine/api/hooks.ts';
import { memoryWith } from '../../helpers/engine-services.ts';
import { makeNode } from '../../helpers/nodes.ts';

const LINE = { nodeId: 'mem_1', text: '[mem_1] The gateway listens on port 7411.', origin: 'user' as const };
const CHANGE = '- no longer Project.Decision: "Redis"';
const memory = memoryWith({
  library: { list: () => [] },
  recall: {
    sessionContext: async () => ({ brief: [], lines: [] }),
    factChanges: async (_, __, { block }) => (block.includes(CHANGE) ? [] : ['Facts that changed:', CHANGE]),
    recall: async () => [{ node: makeNode(), score: 1, line: LINE, raw: null, lanes: {} }],
  },
});

it('a hook that is installed twice says for a prompt what fits it once, as one of both', async () => {
  const handlers = createHookHandlers({
    memory,
    policy: { of: () => ({ captures: true, adds: true, scope: 'project' }) },
    subagents: { ofType: async () => null, note: () => undefined },
    config: Config.parse({ inject: { retrieval: 'hook' }, recall: { deadlineMs: 1_000 } }),
    linkedText: async () => '',
    log: silentLog,
    now: Date.now,
  });
  const { signal } = new AbortController();
  const asked = { sessionId: 's1', projectDir: '/p', prompt: 'Which port?', recent: [] };
  const both = await Promise.all([handlers.prompt(asked, signal), handlers.prompt(asked, signal)]);
  const times = (part: string): number[] => both.map(({ text }) => text.split(part).length - 1);
  expect([times('mem_1'), times(CHANGE)]).toEqual([
    [1, 0],
    [1, 0],
  ]);
  expect(await handlers.prompt(asked, signal)).toEqual({ text: '' });
});
