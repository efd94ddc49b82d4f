import { expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import type { MemorySource } from '../../../../proxy/ports.ts';
import { lookUpMemory } from '../../../../proxy/rewrite/recall.ts';
import { ConversationCache, parseConversation } from '../../../../proxy/wire/conversation.ts';
import { createFakeMemory } from '../../../helpers/fake-memory.ts';

const RULES = 'Contents of /home/dev/shop/CLAUDE.md:\n\n- Say "plum", not "prune".\n- Umlaute bleiben: für.';

it('tells memory what the head of the request says, and nothing of later messages', async () => {
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: `<system-reminder>\n${RULES}\n</system-reminder>` },
        { type: 'text', text: 'Hello.' },
      ],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'The harbor is closed.' }] },
    { role: 'user', content: [{ type: 'text', text: 'Which words do we use?' }] },
  ];
  const body = Buffer.from(JSON.stringify({ model: 'm', messages }));
  const view = parseConversation(body, new ConversationCache());
  if (view === null) throw new Error('not understood');
  let sends = (_: string): boolean => false;
  const memory: MemorySource = {
    ...createFakeMemory(),
    recall: async (request) => {
      sends = request.sends;
      return [];
    },
  };
  const step = { kind: 'epoch', because: 'first', from: null, cut: null, rounds: null } as never;
  const config = { retrieval: 'system-message', memoryDeadlineMs: 10_000 } as never;
  await lookUpMemory(memory, { view, sessionId: 's', step }, config, silentLog);
  const texts = [
    '- Say "plum", not "prune".',
    '- Umlaute bleiben: für.',
    'Hello.',
    'The harbor is closed.',
    'Say nothing.',
  ];
  expect(texts.map(sends)).toEqual([true, true, true, false, false]);
});
