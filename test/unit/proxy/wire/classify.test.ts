import { describe, expect, it } from 'vitest';
import { classify } from '../../../../proxy/wire/classify.ts';
import { type ConversationView, ViewCache, viewConversation } from '../../../../proxy/wire/view.ts';

const SUMMARISE = 'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.';
const RESULT = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' };

function viewOf(last: readonly object[]): ConversationView {
  const body = {
    model: 'claude-opus-5-5',
    max_tokens: 1_000,
    tools: [{ name: 'Bash', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'run it' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }] },
      { role: 'user', content: last },
    ],
  };
  return viewConversation(Buffer.from(JSON.stringify(body)), new ViewCache()) as ConversationView;
}

describe('classify', () => {
  it('takes a tool round for the main loop', () => {
    expect(classify(viewOf([RESULT]), {}).kind).toBe('main');
  });

  it('knows the request for a summary as Claude Code 2.1.197 makes it, beside the last tool result', () => {
    expect(classify(viewOf([RESULT, { type: 'text', text: SUMMARISE }]), {}).kind).toBe('side');
  });

  it('is not misled by a tool result that quotes it, nor by a remark beside one', () => {
    expect(classify(viewOf([{ ...RESULT, content: SUMMARISE }]), {}).kind).toBe('main');
    expect(classify(viewOf([RESULT, { type: 'text', text: `what does "${SUMMARISE}" mean?` }]), {}).kind).toBe('main');
  });
});
