import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSseDecoder, type SseEvent } from '../../../../proxy/http/sse.ts';

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
