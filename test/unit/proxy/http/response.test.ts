import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAssembler, createSseDecoder, messageFromJson, type SseEvent } from '../../../../proxy/http/response.ts';

type Event = Record<string, unknown> & { type: string };

function assemble(events: readonly Event[]) {
  const assembler = createAssembler();
  for (const event of events) assembler.push({ event: event.type, data: JSON.stringify(event) });
  return assembler.result();
}

const START: Event = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-test',
    content: [],
    stop_reason: null,
    usage: {
      input_tokens: 10,
      cache_read_input_tokens: 1_000,
      cache_creation_input_tokens: 70,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 50 },
      output_tokens: 1,
    },
  },
};
const STOP: Event[] = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 42 } },
  { type: 'message_stop' },
];
const start = (index: number, content_block: object): Event => ({ type: 'content_block_start', index, content_block });
const delta = (index: number, change: object): Event => ({ type: 'content_block_delta', index, delta: change });
const stop = (index: number): Event => ({ type: 'content_block_stop', index });

describe('the assembler', () => {
  it('rebuilds thinking, text with citations, and a tool call', () => {
    const { message, complete } = assemble([
      START,
      start(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'let me ' }),
      delta(0, { type: 'thinking_delta', thinking: 'see' }),
      delta(0, { type: 'signature_delta', signature: 'c2ln' }),
      stop(0),
      { type: 'ping' },
      start(1, { type: 'text', text: '' }),
      delta(1, { type: 'text_delta', text: 'Hel' }),
      delta(1, { type: 'text_delta', text: 'lo' }),
      delta(1, { type: 'citations_delta', citation: { cited_text: 'x' } }),
      stop(1),
      start(2, { type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }),
      delta(2, { type: 'input_json_delta', partial_json: '' }),
      delta(2, { type: 'input_json_delta', partial_json: '{"path":"/a' }),
      delta(2, { type: 'input_json_delta', partial_json: '/b"}' }),
      stop(2),
      ...STOP,
    ]);
    expect(complete).toBe(true);
    expect(message).toEqual({
      model: 'claude-test',
      content: [
        { type: 'thinking', thinking: 'let me see', signature: 'c2ln' },
        { type: 'text', text: 'Hello', citations: [{ cited_text: 'x' }] },
        { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { path: '/a/b' } },
      ],
      stopReason: 'end_turn',
      usage: { input: 10, cacheRead: 1_000, cacheWrite5m: 20, cacheWrite1h: 50, output: 42 },
    });
  });

  it('keeps a tool call without arguments, server tools and their results as they came', () => {
    const result = { type: 'web_search_tool_result', tool_use_id: 'srv', content: [{ encrypted_content: 'zz' }] };
    const { message } = assemble([
      START,
      start(0, { type: 'server_tool_use', id: 'srv', name: 'web_search', input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"query":"q"}' }),
      stop(0),
      start(1, result),
      stop(1),
      start(2, { type: 'tool_use', id: 't', name: 'Now', input: {} }),
      stop(2),
      ...STOP,
    ]);
    expect(message?.content).toEqual([
      { type: 'server_tool_use', id: 'srv', name: 'web_search', input: { query: 'q' } },
      result,
      { type: 'tool_use', id: 't', name: 'Now', input: {} },
    ]);
  });

  it('carries blocks, deltas and events it has never heard of', () => {
    const { message, complete } = assemble([
      START,
      { type: 'message_mood', mood: 'fine' },
      start(0, { type: 'compaction', content: 'a', parts: [1] }),
      delta(0, { type: 'compaction_delta', content: 'b', parts: [2], extra: { x: 1 } }),
      stop(0),
      ...STOP,
    ]);
    expect(complete).toBe(true);
    expect(message?.content).toEqual([{ type: 'compaction', content: 'ab', parts: [1, 2], extra: { x: 1 } }]);
  });

  it('takes later usage over earlier and keeps what is not repeated', () => {
    const { message } = assemble([
      START,
      {
        type: 'message_delta',
        delta: {},
        usage: { output_tokens: 5, input_tokens: 12, cache_read_input_tokens: null },
      },
      ...STOP,
    ]);
    expect(message?.usage).toEqual({ input: 12, cacheRead: 1_000, cacheWrite5m: 20, cacheWrite1h: 50, output: 42 });
  });

  it('counts cache writes without a split as five-minute ones', () => {
    const usage = { input_tokens: 1, cache_creation_input_tokens: 9, output_tokens: 0 };
    const { message } = assemble([{ type: 'message_start', message: { id: 'm', model: 'x', usage } }, ...STOP]);
    expect(message?.usage).toMatchObject({ cacheWrite5m: 9, cacheWrite1h: 0 });
  });

  it('tells an unended stream, and an error inside one', () => {
    expect(assemble([START, start(0, { type: 'text', text: 'half' })])).toMatchObject({ complete: false });
    const error: Event = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    expect(assemble([START, error])).toMatchObject({ complete: false, errorText: JSON.stringify(error) });
  });

  it.each([
    ['a delta without its block', [START, delta(3, { type: 'text_delta', text: 'x' }), ...STOP]],
    [
      'tool arguments that are no JSON',
      [
        START,
        start(0, { type: 'tool_use', input: {} }),
        delta(0, { type: 'input_json_delta', partial_json: '{"a' }),
        stop(0),
        ...STOP,
      ],
    ],
    ['an index that is none', [START, start(-1, { type: 'text' }), ...STOP]],
  ] as [string, Event[]][])('gives no message for %s', (_name, events) => {
    expect(assemble(events).message).toBeNull();
  });

  it('lets no field name reach a prototype', () => {
    const assembler = createAssembler();
    assembler.push({ event: 'm', data: JSON.stringify(START) });
    assembler.push({ event: 'm', data: JSON.stringify(start(0, { type: 'odd' })) });
    assembler.push({
      event: 'm',
      data: '{"type":"content_block_delta","index":0,"delta":{"type":"d","__proto__":{"polluted":1}}}',
    });
    expect(assembler.result().message?.content[0]).not.toHaveProperty('polluted');
    expect({}).not.toHaveProperty('polluted');
  });

  it('reads a message that was not streamed', () => {
    const body = { ...(START['message'] as object), content: [{ type: 'text', text: 'hi' }], stop_reason: 'end_turn' };
    expect(messageFromJson(JSON.stringify(body))).toMatchObject({
      content: [{ type: 'text', text: 'hi' }],
      stopReason: 'end_turn',
    });
    expect(messageFromJson('{"input_tokens":3}')).toBeNull();
    expect(messageFromJson('<html>')).toBeNull();
  });
});

const STREAM = Buffer.from(
  [
    'event: message_start\ndata: {"type":"message_start"}\n\n',
    ': a comment\n\n',
    'event: ping\r\ndata: {"type":"ping"}\r\n\r\n',
    'event: unheard_of\rdata: {"ü":"€ 🙂"}\r\r',
    'data: first\ndata:second\nid: 7\nretry: 1\nodd\n\n',
    'event: empty\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    'event: unended\ndata: lost\n',
  ].join(''),
);

const EVENTS: SseEvent[] = [
  { event: 'message_start', data: '{"type":"message_start"}' },
  { event: 'ping', data: '{"type":"ping"}' },
  { event: 'unheard_of', data: '{"ü":"€ 🙂"}' },
  { event: 'message', data: 'first\nsecond' },
  { event: 'message_stop', data: '{"type":"message_stop"}' },
];

function decode(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = createSseDecoder();
  return chunks.flatMap((chunk) => decoder.push(chunk));
}

describe('the event decoder', () => {
  it('reads events, comments, all line ends, several data lines and names it does not know', () => {
    expect(decode([STREAM])).toEqual(EVENTS);
  });

  it('gives the same events at every split position', () => {
    for (let at = 0; at <= STREAM.length; at += 1) {
      expect(decode([STREAM.subarray(0, at), STREAM.subarray(at)])).toEqual(EVENTS);
    }
  });

  it('gives the same events byte by byte', () => {
    expect(decode([...STREAM].map((byte) => Uint8Array.of(byte)))).toEqual(EVENTS);
  });

  it('gives the same events for any number of splits', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(STREAM.length), { maxLength: 20 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), STREAM.length];
        const chunks = places.slice(1).map((end, i) => STREAM.subarray(places[i], end));
        expect(decode(chunks)).toEqual(EVENTS);
      }),
    );
  });

  it('never throws on bytes that are no text', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array()), (chunks) => {
        decode(chunks);
      }),
    );
  });
});
