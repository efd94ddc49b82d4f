import { describe, expect, it } from 'vitest';
import type { RequestShape } from '../../../../proxy/wire/message.ts';
import { shapeHead, shapeMessage } from '../../../../proxy/wire/message.ts';
import { classifyApiError, findAddedRefusal, findRefusals } from '../../../../proxy/wire/validate.ts';
import { findRefusal } from '../../../mock-anthropic/rules.ts';

type Json = Record<string, unknown>;

const BETAS = [
  'context-management-2025-06-27',
  'prompt-caching-scope-2026-01-05',
  'mid-conversation-system-clear-at-2026-08-21',
];
const cached = { cache_control: { type: 'ephemeral' } };
const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } };

const text = (value: string, more: Json = {}) => ({ type: 'text', text: value, ...more });
const user = (content: unknown = 'hi') => ({ role: 'user', content });
const model = (content: unknown = 'hello') => ({ role: 'assistant', content });
const system = (content: unknown = 'note') => ({ role: 'system', content });
const call = (id: string) => ({ type: 'tool_use', id, name: 'Bash', input: {} });
const result = (id: string, content: unknown = 'ok') => ({ type: 'tool_result', tool_use_id: id, content });
const thought = (signature = 'sig') => ({ type: 'thinking', thinking: '', signature });
const search = (id: string) => ({ type: 'server_tool_use', id, name: 'web_search', input: {} });
const found = (id: string) => ({ type: 'web_search_tool_result', tool_use_id: id, content: [] });

function getShape(body: Json & { readonly messages: readonly unknown[] }, bytes = 0) {
  return { ...shapeHead(body), messages: body.messages.map(shapeMessage), bytes };
}

const checkRequest = (shape: RequestShape) => findRefusals(shape).next().value ?? null;

/** The refusal of top-level fields, which the product leaves to upstream and the mock API checks. */
function fieldRefusal(more: Json, betas: readonly string[] = BETAS): string | null {
  const body = { model: 'claude-opus-5-5', max_tokens: 10, messages: [user()], ...more };
  expect(checkRequest(getShape(body))).toBeNull();
  return findRefusal(body, betas, 0)?.message ?? null;
}

function refusal(messages: readonly unknown[], more: Json = {}, betas: readonly string[] = BETAS): string | null {
  const body = { model: 'claude-opus-5-5', max_tokens: 10, messages, ...more };
  const message = checkRequest(getShape(body));
  // The mock API has rules of its own, which have to agree.
  expect(findRefusal(body, betas, 0)?.message ?? null).toBe(message);
  return message;
}

describe('roles', () => {
  it.each<[string, Json[]]>([
    ['one user message', [user()]],
    ['consecutive messages of one role', [user(), user(), model(), model(), user()]],
    ['a system message at the end', [user(), system()]],
    ['system messages before an answer', [user(), system(), system(), model(), user()]],
    [
      'a system message behind a server tool result',
      [user(), model([search('s'), found('s')]), system(), model('x'), user()],
    ],
    [
      'an effort-only system message anywhere',
      [user(), model(), { ...system([]), output_config: { effort: 'low' } }, user()],
    ],
    ['a turn-scoped system message', [user(), { ...system(), clear_at: 'next_user_message' }]],
  ])('accepts %s', (_, messages) => {
    expect(refusal(messages)).toBeNull();
  });

  it.each<[string, Json[], string]>([
    ['no message', [], 'messages: at least one message is required'],
    ['an assistant message first', [model(), user()], 'messages: first message must use the "user" role'],
    ['a system message first', [system(), user()], "messages.0: use the top-level 'system' parameter"],
    [
      'a system message behind a plain answer',
      [user(), model(), system(), user()],
      "messages.2: role 'system' must follow a 'user' message",
    ],
    [
      'one behind a plain answer and before another',
      [user(), model(), system(), model(), user()],
      "messages.2: role 'system' must follow",
    ],
    [
      'a system message before a prompt',
      [user(), system(), system(), user()],
      "messages.2: role 'system' must precede an 'assistant' message",
    ],
    [
      'a system message between call and result',
      [user(), model([call('a')]), system(), user([result('a')])],
      "messages.2: role 'system' must follow",
    ],
    ['an empty system message', [user(), system('')], 'messages.1: system content must contain at least one block'],
    [
      'an image in a system message',
      [user(), system([{ type: 'image' }])],
      "messages.1: role 'system' supports text, tool_addition, and tool_removal blocks only",
    ],
    [
      'an unknown role',
      [user(), { role: 'tool', content: 'x' }],
      "messages.1.role: Input should be 'user' or 'assistant'",
    ],
    ['no role', [{ content: 'x' }], 'messages.0.role: Field required'],
    ['no content', [{ role: 'user' }], 'messages.0.content: Input should be a valid string or array'],
    ['an unknown field in a message', [{ ...user(), id: 1 }], 'messages.0.id: Extra inputs are not permitted'],
    ['a prefill', [user(), model()], 'This model does not support assistant message prefill.'],
  ])('refuses %s', (_, messages, message) => {
    expect(refusal(messages)).toContain(message);
  });

  it('goes by the model for system messages and prefill', () => {
    expect(refusal([user(), system()], { model: 'claude-opus-4-7' })).toBe(
      "role 'system' is not supported on this model",
    );
    expect(refusal([user(), system()], { model: 'claude-sonnet-5' })).toBeNull();
    expect(refusal([user(), model()], { model: 'claude-haiku-4-5-20251001' })).toBeNull();
    expect(refusal([user(), system()], { model: 'claude-next-9' })).toContain('not supported');
  });

  it('takes a paused turn back as it was', () => {
    expect(refusal([user(), model([search('s')])])).toBeNull();
    expect(refusal([user(), model([search('s'), found('s')])])).toBeNull();
  });
});

describe('tool pairing', () => {
  it.each<[string, Json[]]>([
    [
      'parallel calls answered in another order, text behind',
      [user(), model([call('a'), call('b')]), user([result('b'), result('a'), text('t')])],
    ],
    [
      'results in consecutive user messages',
      [user(), model([call('a'), call('b')]), user([result('a')]), user([result('b')])],
    ],
    [
      'empty results',
      [user(), model([call('a')]), user([result('a', '')]), model([call('b')]), user([result('b', [])])],
    ],
    ['a result without content', [user(), model([call('a')]), user([{ type: 'tool_result', tool_use_id: 'a' }])]],
    ['a server tool resolved in the same message', [user(), model([search('s'), found('s'), text('x')]), user()]],
    [
      'a server tool resolved after client results',
      [user(), model([search('s'), call('a')]), user([result('a')]), model([found('s'), text('x')]), user()],
    ],
  ])('accepts %s', (_, messages) => {
    expect(refusal(messages)).toBeNull();
  });

  const missing = '`tool_use` ids were found without `tool_result` blocks immediately after: ';
  it.each<[string, Json[], string]>([
    [
      'a call without a result',
      [user(), model([call('a'), call('b')]), user([result('b')])],
      `messages.1: ${missing}a. Each`,
    ],
    ['calls without any', [user(), model([call('a'), call('b')]), user()], `messages.1: ${missing}a, b. Each`],
    ['text before the result', [user(), model([call('a')]), user([text('t'), result('a')])], `messages.1: ${missing}a`],
    [
      'text between the results',
      [user(), model([call('a'), call('b')]), user([result('a'), text('t'), result('b')])],
      `${missing}b`,
    ],
    ['a result two messages later', [user(), model([call('a')]), user(), model(), user([result('a')])], missing],
    ['a call at the end', [user(), model([call('a')])], 'prefill'],
    [
      'a result of nothing',
      [user([result('a')])],
      'messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a.',
    ],
    [
      'an extra result',
      [user(), model([call('a')]), user([result('a'), result('z')])],
      'messages.2.content.1: unexpected `tool_use_id`',
    ],
    [
      'two results of one call',
      [user(), model([call('a')]), user([result('a'), result('a')])],
      'each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
    ],
    [
      'one id twice',
      [user(), model([call('a')]), user([result('a')]), model([call('a')]), user([result('a')])],
      'messages.3.content.0: `tool_use` ids must be unique',
    ],
    [
      'a server result without its call',
      [user(), model([found('s')]), user()],
      'messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it.',
    ],
    [
      'a server call left open before a prompt',
      [user(), model([search('s')]), user()],
      'was found without a corresponding `web_search_tool_result` block',
    ],
  ])('refuses %s', (_, messages, message) => {
    expect(refusal(messages)).toContain(message);
  });
});

describe('content', () => {
  it.each<[string, Json[], string]>([
    ['empty text', [user([text('')])], 'messages: text content blocks must be non-empty'],
    ['blank text', [user([text(' \n')])], 'messages: text content blocks must contain non-whitespace text'],
    ['blank string content', [user('  ')], 'messages: text content blocks must contain non-whitespace text'],
    ['empty text inside a result', [user(), model([call('a')]), user([result('a', [text('')])])], 'must be non-empty'],
    [
      'an empty message',
      [user([])],
      'messages.0: all messages must have non-empty content except for the optional final assistant message',
    ],
    [
      'an empty assistant message in the middle',
      [user(), model([]), user()],
      'messages.1: all messages must have non-empty content',
    ],
    ['an empty string', [user('')], 'messages.0: all messages must have non-empty content'],
  ])('refuses %s', (_, messages, message) => {
    expect(refusal(messages)).toContain(message);
  });

  it('takes an empty final assistant message where prefill is taken', () => {
    expect(refusal([user(), model([])], { model: 'claude-haiku-4-5' })).toBeNull();
  });

  it('refuses blank text in system, and takes an empty system string', () => {
    expect(refusal([user()], { system: [text('')] })).toBe('system: text content blocks must be non-empty');
    expect(refusal([user()], { system: '' })).toBeNull();
  });

  it('refuses more than 32 MB', () => {
    const shape = getShape({ model: 'claude-opus-5-5', max_tokens: 1, messages: [user()] }, 32 * 1024 * 1024 + 1);
    expect(checkRequest(shape)).toBe('Request exceeds the maximum size');
    expect(checkRequest({ ...shape, bytes: 32 * 1024 * 1024 })).toBeNull();
  });
});

describe('cache breakpoints', () => {
  const four = { system: [text('a', cached), text('b', cached), text('c', cached)] };

  it('takes four, the automatic one counted', () => {
    expect(refusal([user([text('x', cached)])], four)).toBeNull();
    expect(refusal([user()], { ...four, ...cached })).toBeNull();
    expect(refusal([user([text('x', cached)])], { ...four, ...cached })).toBeNull();
  });

  it('refuses a fifth, also inside a result or automatic', () => {
    const message = 'A maximum of 4 blocks with cache_control may be provided. Found 5.';
    const nested = [user(), model([call('a')]), user([result('a', [text('x', cached)]), text('y', cached)])];
    expect(refusal(nested, four)).toBe(message);
    expect(refusal([user([text('x', cached), text('y')])], { ...four, ...cached })).toBe(message);
  });

  it('wants 1h before 5m over tools, system, messages', () => {
    expect(refusal([user([text('x', cached)])], { system: [text('s', hour)] })).toBeNull();
    const tools = [{ name: 'Bash', input_schema: {}, ...cached }];
    expect(refusal([user()], { tools, system: [text('s', hour)] })).toBe(
      "system.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
    );
    expect(refusal([user([text('x', hour)])], { system: [text('s', cached)] })).toContain(
      'messages.0.content.0.cache_control.ttl',
    );
    expect(refusal([user([text('x', cached), text('y')])], hour)).toContain(
      "a ttl='1h' cache_control block must not come after",
    );
  });

  it('refuses one on thinking, on empty text and on a deferred tool', () => {
    expect(refusal([user(), model([{ ...thought(), ...cached }, text('x')]), user()])).toBe(
      'messages.1.content.0.thinking.cache_control: Extra inputs are not permitted',
    );
    expect(refusal([user([text('', cached)])])).toBe(
      'messages.0.content.0.text: cache_control cannot be set for empty text blocks',
    );
    expect(refusal([user()], { tools: [{ name: 'T', input_schema: {}, defer_loading: true, ...cached }] })).toContain(
      "Tool 'T' cannot have both",
    );
  });

  it('refuses an unknown ttl', () => {
    const odd = { cache_control: { type: 'ephemeral', ttl: '2h' } };
    expect(refusal([user([text('x', odd)])])).toBe(
      "messages.0.content.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
    );
  });
});

describe('fields and betas', () => {
  it('refuses an unknown top-level field', () => {
    expect(fieldRefusal({ memory: 1 }, [])).toBe('memory: Extra inputs are not permitted');
  });

  it.each<[string, Json, string]>([
    ['context_management', { context_management: { edits: [] } }, 'context-management-2025-06-27'],
    ['speed', { speed: 'fast' }, 'fast-mode-2026-02-01'],
    [
      'thinking.adaptive.block_binding',
      { thinking: { type: 'adaptive', block_binding: {} } },
      'thinking-binding-controls-2026-08-01',
    ],
    ['output_config.task_budget', { output_config: { task_budget: {} } }, 'task-budgets-2026-03-13'],
    [
      'system.0.cache_control.ephemeral.scope',
      { system: [text('s', { cache_control: { type: 'ephemeral', scope: 'global' } })] },
      'prompt-caching-scope-2026-01-05',
    ],
  ])('wants the beta of %s in the header', (path, more, beta) => {
    expect(fieldRefusal(more, [])).toBe(`${path}: Extra inputs are not permitted`);
    expect(fieldRefusal(more, [beta])).toBeNull();
  });

  it('goes by the model for the thinking mode', () => {
    const manual = { type: 'enabled', budget_tokens: 2048 };
    expect(fieldRefusal({ thinking: manual, max_tokens: 4096 })).toContain('"thinking.type.enabled" is not supported');
    const haiku = { model: 'claude-haiku-4-5', max_tokens: 4096 };
    expect(fieldRefusal({ ...haiku, thinking: manual })).toBeNull();
    expect(fieldRefusal({ ...haiku, thinking: { type: 'adaptive' } })).toContain('adaptive thinking is not supported');
    expect(fieldRefusal({ ...haiku, max_tokens: 2048, thinking: manual })).toContain('`max_tokens` must be greater');
    expect(fieldRefusal({ ...haiku, thinking: { ...manual, budget_tokens: 10 } })).toContain(
      'greater than or equal to 1024',
    );
  });
});

describe('thinking blocks', () => {
  const manual = { model: 'claude-haiku-4-5', max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 2048 } };

  it('have to open the running tool loop in manual mode', () => {
    const loop = (first: Json[]) => [user(), model([...first, call('a')]), user([result('a')])];
    expect(refusal(loop([thought()]), manual)).toBeNull();
    expect(refusal(loop([]), manual)).toContain(
      'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled',
    );
    expect(refusal(loop([]), { thinking: { type: 'adaptive' } })).toBeNull();
  });

  it('may be missing in later rounds and in finished turns', () => {
    const rounds = [
      user(),
      model([thought(), call('a')]),
      user([result('a')]),
      model([call('b')]),
      user([result('b')]),
    ];
    expect(refusal(rounds, manual)).toBeNull();
    const done = [user(), model([call('a')]), user([result('a')]), model('x'), user('next')];
    expect(refusal(done, manual)).toBeNull();
  });

  it('need a signature and an assistant message', () => {
    expect(refusal([user(), model([{ type: 'thinking', thinking: 'x' }, text('y')]), user()])).toBe(
      'messages.1.content.0.thinking.signature: Field required',
    );
    expect(refusal([user([thought(), text('x')])])).toContain('may only be in `assistant` messages');
  });
});

it('a citation needs its document before it', () => {
  const page = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' } };
  const citing = (index: number) =>
    model([text('x', { citations: [{ type: 'char_location', document_index: index }] })]);
  expect(refusal([user([page]), citing(0), user()])).toBeNull();
  expect(refusal([user(), model([call('a')]), user([result('a', [page, page])]), citing(1), user()])).toBeNull();
  expect(refusal([user(), citing(0), user()])).toBe('messages.1.content.0.text.citations: no document with index 0');
  expect(refusal([user([page]), citing(1), user([page])])).toContain('no document with index 1');
});

describe('shapes', () => {
  it('are plain and small', () => {
    const shape = shapeMessage(user([text('x'.repeat(100_000)), result('a', [text('y'.repeat(100_000))])]));
    expect(JSON.stringify(shape).length).toBeLessThan(200);
    expect(JSON.parse(JSON.stringify(shape))).toEqual(shape);
  });

  it('survive what is no message at all', () => {
    for (const odd of [null, 1, 'x', [], { role: 1, content: 2 }, { role: 'user', content: [null, 5, { type: 3 }] }]) {
      expect(() =>
        checkRequest(getShape({ model: 'm', messages: [odd], system: [null], tools: [null] })),
      ).not.toThrow();
    }
  });
});

describe('a rewrite', () => {
  const talk = [user('a'), model([call('t')]), user([result('t')]), model('b'), user('c')];
  const added = (received: readonly unknown[], sent: readonly unknown[], more: Json = {}): string | null => {
    const shape = (messages: readonly unknown[]) => getShape({ model: 'claude-opus-5-5', messages, ...more });
    return findAddedRefusal(shape(received), shape(sent));
  };
  /** What this table of rules refuses and a later API may accept. */
  const broken: [string, Json[], Json?][] = [
    ['an unknown block in a system message', [user('a'), system([{ type: 'notice' }]), ...talk.slice(1)]],
    ['an unknown message key', [...talk.slice(0, -1), { ...user('c'), id: 'm' }]],
    ['an unknown ttl', talk, { cache_control: { type: 'ephemeral', ttl: '24h' } }],
    ['a blank text block', [user([text('a'), text(' ')]), ...talk.slice(1)]],
    ['five breakpoints', [user([1, 2, 3, 4, 5].map((at) => text(`${at}`, cached))), ...talk.slice(1)]],
    ['a system message on a model without them', [user('a'), system(), ...talk.slice(1)], { model: 'claude-opus-4-7' }],
  ];

  it.each(broken)('adds no refusal where the received request has %s', (_, received, more) => {
    expect(added(received, received, more)).toBeNull();
    expect(added(received, [received[0], model('bridge'), user('preamble'), ...received.slice(1)], more)).toBeNull();
  });

  it.each(broken)('is refused for what it adds, where the received request has %s too', (_, received, more) => {
    expect(added(received, [...received, user([text('')])], more)).toContain('non-empty');
    expect(added(received, [...received, user([result('gone')])], more)).toContain('tool_use_id');
    expect(added(received, [...received, user([text('x', { cache_control: { ttl: 'x' } })])], more)).toBeDefined();
    expect(added(received, [system('first'), ...received], more)).toContain('messages.0');
  });

  it.each(broken.slice(0, 1).concat(broken.slice(3, 5)))('is refused where it has %s twice', (_, received) => {
    const again = received.filter((message, at) => at === 0 || message['role'] === 'system');
    expect(added(received, [...again, model('x'), ...received])).toBeDefined();
  });
});

const body = (message: string): string =>
  JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } });

describe('a refusal of a rewritten request', () => {
  it.each([
    [
      'messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
      'thinking',
    ],
    ['messages.3: `tool_use` ids were found without `tool_result` blocks immediately after', 'structure'],
    ['A maximum of 4 blocks with cache_control may be provided. Found 5.', 'structure'],
    ['prompt is too long: 210000 tokens > 200000 maximum', null],
    ['Your credit balance is too low to access the API', null],
    ['max_tokens: 999999 > 64000', null],
    ['input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length', null],
    ['system: Invalid model name', null],
    ['Web search is not enabled for this organization', null],
    ['Unexpected value(s) `fast-mode-2026-02-01` for the `anthropic-beta` header.', null],
    ['thinking.enabled.budget_tokens: Input should be greater than or equal to 1024', null],
    ['Could not process image', null],
    ['a sentence that nobody has seen before', 'structure'],
  ])('%s', (message, fault) => {
    expect(classifyApiError(body(message))).toBe(fault);
  });
});
