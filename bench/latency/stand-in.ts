import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setInterval as every } from 'node:timers/promises';
import { nowMs } from './stats.ts';

/**
 * A process of its own: an API that thinks about nothing, so that what is measured is the way to it. Key and
 * certificate come as JSON on stdin, how long idle connections are kept as its argument (0: for as long as it runs).
 */

const CHUNK_MS = 20;
const head = { 'content-type': 'text/event-stream; charset=utf-8', 'x-bench-received': '' };
const options = JSON.parse(await stdin()) as { key: string; cert: string };

const server = https.createServer({ ...options, ALPNProtocols: ['http/1.1'] }, (request, response) => {
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  request.on('end', () => {
    response.writeHead(200, { ...head, 'x-bench-received': String(bytes) });
    const chunks = Number(request.headers['x-bench-chunks'] ?? 0);
    if (chunks > 0) void stream(response, chunks);
    else response.end(opening() + closing(String(request.headers['x-bench-answer'] ?? '')));
  });
});
server.on('connection', (socket: Socket) => socket.setNoDelay(true));
server.keepAliveTimeout = Number(process.argv[2]);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));

/** Every chunk says when it was sent, on the clock that all processes of a machine share. */
async function stream(response: NodeJS.WritableStream, chunks: number): Promise<void> {
  response.write(opening());
  let sent = 0;
  for await (const _ of every(CHUNK_MS)) {
    response.write(event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: `@${nowMs()}@` } }));
    sent += 1;
    if (sent === chunks) break;
  }
  response.end(event('content_block_stop', { index: 0 }) + ending('end_turn'));
}

function opening(): string {
  const usage = { input_tokens: 10, output_tokens: 1 };
  const message = { id: 'msg_bench', type: 'message', role: 'assistant', model: 'claude-opus-5-5', content: [], usage };
  const start = event('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } });
  return start + event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
}

/** `answer` is base64 of a tool call's JSON; '' ends the turn. */
function closing(answer: string): string {
  const said = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Done.' } });
  const stop = event('content_block_stop', { index: 0 });
  if (answer === '') return said + stop + ending('end_turn');
  const { id, name, input } = JSON.parse(Buffer.from(answer, 'base64').toString('utf8')) as Record<string, unknown>;
  const call = event('content_block_start', { index: 1, content_block: { type: 'tool_use', id, name, input: {} } });
  const json = { type: 'input_json_delta', partial_json: JSON.stringify(input) };
  const rest = event('content_block_delta', { index: 1, delta: json }) + event('content_block_stop', { index: 1 });
  return said + stop + call + rest + ending('tool_use');
}

function ending(reason: string): string {
  const delta = { stop_reason: reason, stop_sequence: null };
  return event('message_delta', { delta, usage: { output_tokens: 9 } }) + event('message_stop', {});
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

async function stdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
