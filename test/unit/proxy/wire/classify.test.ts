import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classify, isStandalone, mayBeStandalone } from '../../../../proxy/wire/classify.ts';
import { ConversationCache, type ConversationView, parseConversation } from '../../../../proxy/wire/conversation.ts';
import { scanBody } from '../../../../proxy/wire/json-scanner.ts';

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
  return parseConversation(Buffer.from(JSON.stringify(body)), new ConversationCache()) as ConversationView;
}

describe('classify', () => {
  it('takes a tool round for the main loop', () => {
    expect(classify(viewOf([RESULT]), {}).kind).toBe('main');
  });

  it('recognizes the request for a summary next to the last tool result, as Claude Code 2.1.197 sends it', () => {
    expect(classify(viewOf([RESULT, { type: 'text', text: SUMMARISE }]), {}).kind).toBe('side');
  });

  it('ignores a tool result that quotes it, and a remark next to one', () => {
    expect(classify(viewOf([{ ...RESULT, content: SUMMARISE }]), {}).kind).toBe('main');
    expect(classify(viewOf([RESULT, { type: 'text', text: `what does "${SUMMARISE}" mean?` }]), {}).kind).toBe('main');
  });
});

describe('isStandalone', () => {
  const message = fc.constantFrom({ role: 'user', content: 'a title for: x' }, { role: 'user', content: SUMMARISE });
  const tools = fc.constantFrom(undefined, [], [{ name: 'Bash' }]);
  const headers = fc.constantFrom<Record<string, string>>(
    {},
    { 'x-claude-code-session-id': 's' },
    { 'x-claude-code-request-class': 'main' },
    { 'x-claude-code-request-class': 'auxiliary' },
    { 'x-claude-code-agent-id': 'a' },
  );

  it('is true only for a request outside the main loop and its prefix, with any message', () => {
    const seen = { alone: 0, others: 0 };
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 3 }), tools, headers, (messages, tools, headers) => {
        const body = Buffer.from(JSON.stringify({ model: 'claude-haiku-4-5', max_tokens: 9, messages, tools }));
        const view = parseConversation(body, new ConversationCache()) as ConversationView;
        const alone = isStandalone(scanBody(body) as NonNullable<ReturnType<typeof scanBody>>, headers);
        seen[alone ? 'alone' : 'others'] += 1;
        if (!alone) return;
        expect(mayBeStandalone(body, headers)).toBe(true);
        expect(classify(view, headers).kind).toBe('other');
        expect(view.infos).toHaveLength(1);
      }),
    );
    expect(Math.min(seen.alone, seen.others)).toBeGreaterThan(0);
  });
});
