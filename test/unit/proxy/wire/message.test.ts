import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalizeMessage, extendLineage, hashMessage } from '../../../../proxy/wire/message.ts';

const mark = { cache_control: { type: 'ephemeral' } };

describe('the canonical form of a message', () => {
  it('does not change when a newest message becomes history', () => {
    const newest = { role: 'user', content: [{ type: 'text', text: 'second turn', ...mark }] };
    expect(hashMessage(newest)).toBe(hashMessage({ content: 'second turn', role: 'user' }));
  });

  it('does not count thinking, which a client may strip from a whole session', () => {
    const thought = { type: 'thinking', thinking: '', signature: 'abc' };
    const said = { type: 'text', text: 'done' };
    const withThinking = { role: 'assistant', content: [thought, said, { type: 'redacted_thinking', data: 'x' }] };
    expect(hashMessage(withThinking)).toBe(hashMessage({ role: 'assistant', content: [said] }));
  });

  it('reads a tool result of one text the same as string and as block', () => {
    const result = (content: unknown) => ({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 't', content }],
    });
    expect(hashMessage(result('ok'))).toBe(hashMessage(result([{ type: 'text', text: 'ok', ...mark }])));
  });

  it('keeps a cache_control that is data of a tool call', () => {
    const call = (input: unknown) => ({
      role: 'assistant',
      content: [{ type: 'tool_use', id: 't', name: 'n', input }],
    });
    expect(hashMessage(call(mark))).not.toBe(hashMessage(call({})));
  });

  it('tells apart what differs, and ignores key order at every depth', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
        const reversed = Object.fromEntries(Object.entries(input).reverse());
        const call = (value: unknown) => ({ role: 'assistant', content: [{ type: 'tool_use', input: { value } }] });
        expect(canonicalizeMessage(call(reversed))).toBe(canonicalizeMessage(call(input)));
        expect(canonicalizeMessage(call([input]))).not.toBe(canonicalizeMessage(call(input)));
      }),
    );
  });

  it('names a conversation by all that came before', () => {
    const hash = hashMessage({ role: 'user', content: 'yes' });
    const once = extendLineage('', hash);
    expect(extendLineage(once, hash)).not.toBe(once);
    expect(once).toMatch(/^[0-9a-f]{64}$/);
  });
});
