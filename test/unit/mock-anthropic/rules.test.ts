import { describe, expect, it } from 'vitest';
import { findRefusal } from '../../mock-anthropic/rules.ts';

type Json = Record<string, unknown>;

const user = (...content: Json[]): Json => ({ role: 'user', content });
const model = (...content: Json[]): Json => ({ role: 'assistant', content });
const text = (more: Json = {}): Json => ({ type: 'text', text: 'x', ...more });
const call = (more: Json = {}): Json => ({ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {}, ...more });
const result = (more: Json = {}): Json => ({ type: 'tool_result', tool_use_id: 'toolu_1', ...more });
const PAGE: Json = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' } };
const citing = (index: number): Json => text({ citations: [{ type: 'char_location', document_index: index }] });

function refusal(...messages: Json[]): string | null {
  return findRefusal({ model: 'claude-opus-5-5', max_tokens: 10, messages }, [], 0)?.message ?? null;
}

// What the product never sends on its own account, and so has no rule for.
describe('the mock API refuses', () => {
  it.each<[string, Json[], string]>([
    ['a block of an unknown type', [user({ type: 'poem' })], "messages.0.content.0: Input tag 'poem'"],
    ['a block of the other role', [user(text(), call())], "messages.0.content.1: Input tag 'tool_use'"],
    [
      'an unknown block inside a tool result',
      [user(text()), model(call()), user(result({ content: [{ type: 'poem' }] }))],
      "messages.2.content.0.tool_result.content.0: Input tag 'poem'",
    ],
    [
      'a tool id with a space',
      [user(text()), model(call({ id: 'a b' })), user(result({ tool_use_id: 'a b' }))],
      "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ],
    [
      'a tool call whose input is no object',
      [user(text()), model(call({ input: '{}' })), user(result())],
      'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
    ],
    [
      'a citation of a document that was left out',
      [user(text()), model(citing(0)), user(text())],
      'messages.1.content.0.text.citations.0.document_index: no document with index 0',
    ],
    [
      'a citation of a document that comes later',
      [user(PAGE), model(citing(1)), user(PAGE)],
      'messages.1.content.0.text.citations.0.document_index: no document with index 1',
    ],
    [
      'a breakpoint of another type',
      [user(text({ cache_control: { type: 'forever' } }))],
      "messages.0.content.0.cache_control.type: Input should be 'ephemeral'",
    ],
    [
      'a breakpoint with an unknown field',
      [user(text({ cache_control: { type: 'ephemeral', days: 3 } }))],
      'messages.0.content.0.cache_control.ephemeral.days: Extra inputs are not permitted',
    ],
  ])('%s', (_, messages, message) => {
    expect(refusal(...messages)).toContain(message);
  });
});

it('the mock API takes a citation of an earlier document, inside a tool result too', () => {
  expect(refusal(user(PAGE), model(citing(0)), user(text()))).toBeNull();
  const read = [user(text()), model(call()), user(result({ content: [PAGE] }))];
  expect(refusal(...read, model(citing(0)), user(text()))).toBeNull();
});
