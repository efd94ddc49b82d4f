import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { removeRigCerts, startRig } from '../../../helpers/proxy-rig.ts';
import { CLIENT } from '../../../helpers/tls-client.ts';

afterAll(removeRigCerts);

const usage = { input_tokens: 7, cache_read_input_tokens: 4_321, cache_creation_input_tokens: 99, output_tokens: 1 };
const stream = Buffer.from(
  [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [], usage } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 12 } },
    { type: 'message_stop' },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
);
const counted = Buffer.from('{"input_tokens": 4427}');

describe('what an answer says of its tokens', () => {
  it.each([
    ['a stream', '/v1/messages?beta=true', 'text/event-stream', stream, ''],
    ['a compressed stream', '/v1/messages?beta=true', 'text/event-stream', gzipSync(stream), 'gzip'],
    ['a count', '/v1/messages/count_tokens?beta=true', 'application/json', counted, ''],
  ])(
    'reaches Claude Code byte for byte though the request was rewritten: %s',
    async (_, path, type, body, encoding) => {
      const rig = await startRig({
        rewrite: () => Buffer.from('{"messages":["less"]}'),
        answer(_request, response) {
          response.writeHead(200, {
            'content-type': type,
            ...(encoding === '' ? {} : { 'content-encoding': encoding }),
          });
          response.end(body);
        },
      });
      try {
        const reply = await rig.ask({ path, headers: CLIENT, body: '{"messages":["much more than that"]}' });
        expect(rig.standIn.received[0]?.body.toString()).toBe('{"messages":["less"]}');
        expect(reply.body.equals(body)).toBe(true);
        if (path.includes('count_tokens')) return;
        expect((await rig.nextSeen()).message?.usage).toMatchObject({ input: 7, cacheRead: 4_321, output: 12 });
      } finally {
        await rig.close();
      }
    },
  );
});
