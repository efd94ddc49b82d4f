import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { findRefusal } from '../../mock-anthropic/rules.ts';

type Json = Record<string, unknown>;

const user = (...content: Json[]): Json => ({ role: 'user', content });
const model = (...content: Json[]): Json => ({ role: 'assistant', content });
const text = (more: Json = {}): Json => ({ type: 'text', text: 'x', ...more });
const call = (more: Json = {}): Json => ({ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {}, ...more });
const poemCall = { type: 'server_tool_use', id: 'srv_1', name: 'poem', input: {} };
const result = (more: Json = {}): Json => ({ type: 'tool_result', tool_use_id: 'toolu_1', ...more });
const PAGE: Json = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' } };
const citing = (index: number): Json => text({ citations: [{ type: 'char_location', document_index: index }] });

const scoped: Json = { role: 'system', content: 'note', clear_at: 'next_user_message' };

function refusal(...messages: Json[]): string | null {
  return fieldRefusal({ messages });
}

function fieldRefusal(more: Json, betas: readonly string[] = []): string | null {
  const body = { model: 'claude-opus-5-5', max_tokens: 10, messages: [user(text())], ...more };
  return findRefusal(body, betas, 0)?.message ?? null;
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
    ['no block at all', [user(text(), 'x' as never)], 'messages.0.content.1: Input should be a valid dictionary'],
    [
      "a server tool's result in a prompt",
      [user(text(), { type: 'web_search_tool_result', tool_use_id: 's', content: [] })],
      "messages.0.content.1: Input tag 'web_search_tool_result'",
    ],
    [
      'a result of a server tool that does not exist',
      [user(text()), model(poemCall, { type: 'poem_tool_result', tool_use_id: 'srv_1', content: [] }), user(text())],
      "messages.1.content.1: Input tag 'poem_tool_result'",
    ],
    [
      'a block of a beta that the header does not name',
      [user({ type: 'container_upload', file_id: 'file_1' })],
      "messages.0.content.0: Input tag 'container_upload'",
    ],
    [
      'a tool call whose input is no object',
      [user(text()), model(call({ input: '{}' })), user(result())],
      'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
    ],
    [
      'a citation of a document that was left out',
      [user(text()), model(citing(0)), user(text())],
      'messages.1.content.0.text.citations: no document with index 0',
    ],
    [
      'a citation of a document that comes later',
      [user(PAGE), model(citing(1)), user(PAGE)],
      'messages.1.content.0.text.citations: no document with index 1',
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

const BASH = { name: 'Bash', input_schema: { type: 'object' } };
const THINKS = { tools: [BASH], thinking: { type: 'adaptive' } };

describe('the mock API refuses the fields of a request with', () => {
  it.each<[string, Json, string]>([
    ['two tools of one name', { tools: [BASH, { ...BASH }] }, 'tools: Tool names must be unique.'],
    ['a tool name with a dot', { tools: [{ ...BASH, name: 'a.b' }] }, 'tools.0.custom.name: String should match'],
    ['a tool without a schema', { tools: [{ name: 'Bash' }] }, 'tools.0.custom.input_schema: Field required'],
    ['a choice among no tools', { tool_choice: { type: 'any' } }, 'tool_choice may only be specified while'],
    [
      'a choice of a tool that is not there',
      { tools: [BASH], tool_choice: { type: 'tool', name: 'Read' } },
      "Tool 'Read' not found in provided tools",
    ],
    ['thinking and a forced tool', { ...THINKS, tool_choice: { type: 'any' } }, 'Thinking may not be enabled when'],
    [
      'thinking and a named tool',
      { ...THINKS, tool_choice: { type: 'tool', name: 'Bash' } },
      'Thinking may not be enabled when',
    ],
    ['thinking and a temperature', { ...THINKS, temperature: 0.5 }, '`temperature` may only be set to 1'],
    ['thinking and top_k', { ...THINKS, top_k: 5 }, '`top_k` must be unset'],
    ['thinking and a low top_p', { ...THINKS, top_p: 0.5 }, '`top_p` must be greater'],
    ['a system block that is no text', { system: [{ type: 'image' }] }, "system.0.type: Input should be 'text'"],
    [
      'a turn-scoped message without its beta',
      { messages: [user(text()), scoped] },
      'messages.1.clear_at: Extra inputs',
    ],
  ])('%s', (_, more, message) => {
    expect(fieldRefusal(more)).toContain(message);
  });

  it('none of them where they are allowed', () => {
    expect(fieldRefusal({ tools: [BASH], tool_choice: { type: 'any' }, temperature: 0 })).toBeNull();
    expect(fieldRefusal({ ...THINKS, tool_choice: { type: 'auto' }, temperature: 1, top_p: 0.95 })).toBeNull();
    const betas = ['mid-conversation-system-clear-at-2026-08-21'];
    expect(fieldRefusal({ messages: [user(text()), scoped] }, betas)).toBeNull();
    const upload = { messages: [user({ type: 'container_upload', file_id: 'file_1' })] };
    expect(fieldRefusal(upload, ['files-api-2025-04-14'])).toBeNull();
  });
});

it('the mock API shares no file with the product', () => {
  const dir = 'test/mock-anthropic';
  const imports = readdirSync(dir).flatMap((name) => [
    ...readFileSync(`${dir}/${name}`, 'utf8').matchAll(/from '([^']+)'/g),
  ]);
  expect(imports.length).toBeGreaterThan(20);
  expect(imports.map(([, from]) => from).filter((from) => !/^(\.\/|node:)/.test(String(from)))).toEqual([]);
});
