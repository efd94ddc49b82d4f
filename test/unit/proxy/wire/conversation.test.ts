import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ConversationCache,
  type ConversationView,
  classify,
  isStandalone,
  mayBeStandalone,
  parseConversation,
  parseRequest,
} from '../../../../proxy/wire/conversation.ts';
import { scanBody } from '../../../../proxy/wire/json.ts';
import { CODE_POINT } from '../../../helpers/code-point.ts';

const text = fc.string({ unit: CODE_POINT, maxLength: 40 });
const message = fc.record({
  role: fc.constantFrom('user', 'assistant', 'system'),
  content: fc.oneof(text, fc.array(fc.record({ type: fc.constantFrom('text', 'thinking'), text }), { maxLength: 3 })),
});
const messages = fc.array(message, { minLength: 1, maxLength: 8 });
const head = fc.dictionary(fc.constantFrom('model', 'max_tokens', 'metadata', 'stream'), fc.jsonValue());
const tail = fc.dictionary(fc.constantFrom('system', 'tools', 'thinking', 'messages2'), fc.jsonValue());

const getBody = (before: object, list: readonly unknown[], after: object): string =>
  JSON.stringify({ ...before, messages: list, ...after });

/** What was seen before must not change what is seen. */
function expectSame(bodies: readonly Buffer[]): void {
  const cache = new ConversationCache();
  for (const body of bodies) {
    const [seen, alone] = [parseConversation(body, cache), parseConversation(body, new ConversationCache())];
    // Byte by byte, megabytes would take minutes.
    expect({ ...seen, body: seen?.body === body }).toEqual({ ...alone, body: alone?.body === body });
  }
}

describe('a view of a request', () => {
  it('counts images and documents as what they weigh, wherever they are', () => {
    const data = 'A'.repeat(400_000);
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
    const result = { type: 'tool_result', tool_use_id: 't', content: [image, { type: 'document', source: { data } }] };
    const getTokens = (content: unknown): number => {
      const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] }));
      return parseConversation(body, new ConversationCache())?.infos[0]?.tokens ?? 0;
    };
    expect(getTokens([image])).toBeGreaterThan(1_500);
    expect(getTokens([image])).toBeLessThan(1_600);
    expect(getTokens([result])).toBeLessThan(3_200);
    expect(getTokens(data)).toBeGreaterThan(100_000);
  });

  const environment = (dir: string): string =>
    `# Environment\nYou have been invoked in the following environment: \n - Primary working directory: ${dir}\n - Platform: linux`;
  const continued = 'This session is being continued from a previous conversation that ran out of context.';

  it.each([
    [
      'a system message',
      [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: environment('/home/shop') },
      ],
    ],
    [
      'a reminder of the first prompt, for models without system messages',
      [{ role: 'user', content: [{ type: 'text', text: `<system-reminder>\n${environment('/home/shop')}` }] }],
    ],
    [
      'a system message whose skills follow it and state another one',
      [
        { role: 'user', content: 'Hi' },
        {
          role: 'system',
          content: `Deferred tools:\nA\n\n${environment('/home/shop')}\n\n${environment('/home/other')}`,
        },
      ],
    ],
    [
      'a system message after a compaction, where skills come first',
      [
        { role: 'user', content: continued },
        { role: 'system', content: [], output_config: { effort: 'low' } },
        { role: 'assistant', content: 'Noted.' },
        { role: 'user', content: 'Hi' },
        { role: 'system', content: `Skills:\n\n${environment('/home/other')}\n\n${environment('/home/shop')}` },
      ],
    ],
    [
      'the first message that states one',
      [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: environment('/home/shop') },
        { role: 'assistant', content: 'Hi' },
        { role: 'user', content: 'Go on' },
        { role: 'system', content: environment('/home/other') },
      ],
    ],
  ])('finds the working directory in %s', (_, list) => {
    const view = parseConversation(Buffer.from(JSON.stringify({ messages: list })), new ConversationCache());
    expect(view?.system.workingDirectory).toBe('/home/shop');
  });

  it('finds the working directory that Claude Code states with --bare', () => {
    const find = (text: string) => {
      const system = [
        { type: 'text', text: "You are a Claude agent, built on Anthropic's Claude Agent SDK." },
        { type: 'text', text },
      ];
      const body = Buffer.from(JSON.stringify({ system, messages: [{ role: 'user', content: 'Hi' }] }));
      return parseConversation(body, new ConversationCache())?.system.workingDirectory;
    };
    expect(find('CWD: /home/shop\nDate: 2026-11-30\n\nBe brief.')).toBe('/home/shop');
    expect(find('Be brief.\nCWD: /home/other\nDate: 2026-11-30')).toBeNull();
  });

  it.each([
    ['what the user typed', `Look:\n${environment('/home/other')}`],
    ['a file', `<system-reminder>\nContents of CLAUDE.md:\n${environment('/home/other')}`],
    ['a result of a tool', [{ type: 'tool_result', tool_use_id: 't', content: environment('/home/other') }]],
  ])('finds none in %s', (_, content) => {
    const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] }));
    expect(parseConversation(body, new ConversationCache())?.system.workingDirectory).toBeNull();
  });

  it.each([
    ['2.1.332', environment('/home/other'), environment('/home/shop')],
    ['2.2.0', environment('/home/other'), environment('/home/shop')],
    ['2.1.197', environment('/home/shop'), `Agents:\n${environment('/home/other')}`],
  ])(
    'finds what Claude Code %s states, though an agent of the repository states another',
    (version, system, stated) => {
      const list = [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: stated },
      ];
      const body = Buffer.from(JSON.stringify({ model: 'claude-opus-5-5', system, messages: list }));
      const headers = { 'user-agent': `claude-cli/${version} (external, cli)` };
      const request = { requestId: 'r', path: 'messages' as const, headers, body, receivedAtMs: 0 };
      expect(parseRequest(request, new ConversationCache())?.view.system.workingDirectory).toBe('/home/shop');
    },
  );

  it('keeps the directory in which the session began, where a request states one below it or none', () => {
    const cache = new ConversationCache();
    const find = (sessionId: string, directory: string | null, kind = 'main') => {
      const list = [
        { role: 'user', content: 'Hi' },
        ...(directory === null ? [] : [{ role: 'system', content: environment(directory) }]),
      ];
      const body = Buffer.from(JSON.stringify({ model: 'claude-opus-5-5', tools: [{ name: 'Bash' }], messages: list }));
      const headers = { 'x-claude-code-session-id': sessionId, 'x-claude-code-request-class': kind };
      const request = { requestId: 'r', path: 'messages' as const, headers, body, receivedAtMs: 0 };
      return parseRequest(request, cache)?.view.system.workingDirectory;
    };
    expect(find('a', '/home', 'subagent')).toBe('/home');
    expect(find('a', '/home/shop')).toBe('/home/shop');
    expect(find('a', '/home/shop/api')).toBe('/home/shop');
    expect(find('a', '/home/shop/api', 'subagent')).toBe('/home/shop');
    expect(find('a', null)).toBe('/home/shop');
    expect(find('a', '/home/shopping')).toBe('/home/shopping');
    expect(find('b', null)).toBeNull();
    expect(find('b', '/home/shop/api')).toBe('/home/shop/api');
  });

  it('is the same whichever requests of the conversation were seen before it', () => {
    fc.assert(
      fc.property(head, messages, messages, tail, tail, fc.nat(8), (before, list, more, after, later, kept) => {
        const first = getBody(before, list, after);
        const next = getBody(before, [...list.slice(0, kept), ...more], later);
        expectSame([first, next, first, getBody({}, [...list, ...more], after)].map((body) => Buffer.from(body)));
      }),
    );
  });

  it('is the same for bytes that were damaged or cut after what is known', () => {
    fc.assert(
      fc.property(
        head,
        messages,
        tail,
        fc.nat(),
        fc.constantFrom(...'"\\{}[],: 0a'),
        (before, list, after, at, byte) => {
          const body = getBody(before, list, after);
          const damaged = Buffer.from(body);
          damaged.write(byte, at % damaged.length);
          expectSame([
            Buffer.from(body),
            damaged,
            Buffer.from(body).subarray(0, at % damaged.length),
            Buffer.from(body),
          ]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('separates conversations with the same beginning, and works without one that is too large to keep', () => {
    const said = (...texts: string[]): Buffer =>
      Buffer.from(
        getBody(
          { model: 'm' },
          texts.map((content) => ({ role: 'user', content })),
          {},
        ),
      );
    const large = 'x'.repeat(9 * 1024 * 1024);
    expectSame([
      said('a', 'b'),
      said('a', 'c'),
      said('b'),
      said('a', 'b', 'd'),
      said('a', large),
      said('a', large, 'e'),
    ]);
  });
});

const SUMMARISE = 'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.';
const RESULT = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' };

function getView(last: readonly object[]): ConversationView {
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
    expect(classify(getView([RESULT]), {})).toBe('main');
  });

  it('recognizes the request for a summary next to the last tool result, as Claude Code 2.1.197 sends it', () => {
    expect(classify(getView([RESULT, { type: 'text', text: SUMMARISE }]), {})).toBe('side');
  });

  it('ignores a tool result that quotes it, and a remark next to one', () => {
    expect(classify(getView([{ ...RESULT, content: SUMMARISE }]), {})).toBe('main');
    expect(classify(getView([RESULT, { type: 'text', text: `what does "${SUMMARISE}" mean?` }]), {})).toBe('main');
  });
});

describe('classify, of what 2.1.332 says of its requests', () => {
  const said = (requestClass: string) => ({ 'x-claude-code-request-class': requestClass });
  const agent = { 'x-claude-code-agent-id': 'a1' };
  const title = (): ConversationView => {
    const messages = [{ role: 'user', content: [{ type: 'text', text: '<session>\nFix it.\n</session>' }] }];
    const body = { model: 'claude-haiku-5-5', max_tokens: 128_000, tools: [], messages };
    return parseConversation(Buffer.from(JSON.stringify(body)), new ConversationCache()) as ConversationView;
  };

  it.each([
    ['the main loop', getView([RESULT]), said('main'), 'main'],
    ['a question beside it', getView([RESULT]), said('auxiliary'), 'side'],
    ['its compaction', getView([RESULT]), said('compaction'), 'side'],
    ['a reply beside it', getView([RESULT]), said('side_reply'), 'side'],
    ['one of a class that is not known', getView([RESULT]), said('forecast'), 'main'],
    ['one that says nothing', getView([RESULT]), said(''), 'main'],
    ['a title', title(), said('auxiliary'), 'other'],
    ['the compaction of a subagent', getView([RESULT]), { ...said('compaction'), ...agent }, 'other'],
    ['a question about a subagent', getView([RESULT]), { ...said('auxiliary'), ...agent }, 'other'],
  ] as const)('%s', (_, view, headers, kind) => {
    expect(classify(view, headers)).toBe(kind);
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
        expect(classify(view, headers)).toBe('other');
        expect(view.infos).toHaveLength(1);
      }),
    );
    expect(Math.min(seen.alone, seen.others)).toBeGreaterThan(0);
  });
});
