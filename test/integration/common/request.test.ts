import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { postLocal } from '../../../common/request.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
const request = { path: '/v1/status', body: '{"text":"메모리"}' };
let server: net.Server | null = null;

afterEach(() => {
  server?.close();
  server = null;
});

async function listening(made: net.Server): Promise<string> {
  const address = path.join(await tempDir(), 'engine.sock');
  server = made;
  await new Promise<void>((resolve) => made.listen({ path: address }, resolve));
  return address;
}

/** A listener that says this, in pieces, and hangs up. */
const saying = (...pieces: readonly (string | Buffer)[]): Promise<string> =>
  listening(
    net.createServer((connection) => {
      connection.on('error', () => undefined);
      connection.once('data', () => {
        for (const piece of pieces) connection.write(piece);
        connection.end();
      });
    }),
  );

it('tells an HTTP server what it has to, and gives back its answer whole', async () => {
  const answer = JSON.stringify({ result: '記憶 🎯'.repeat(100_000) });
  const heard: unknown[] = [];
  const address = await listening(
    http.createServer((asked, response) => {
      const chunks: Buffer[] = [];
      asked.on('data', (chunk: Buffer) => chunks.push(chunk));
      asked.on('end', () => {
        heard.push(asked.method, asked.url, asked.headers['content-type'], Buffer.concat(chunks).toString());
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end(answer);
      });
    }),
  );
  let sent = 0;
  const onSent = (): void => {
    sent += 1;
  };
  expect(await postLocal(address, { ...request, signal: AbortSignal.timeout(10_000), onSent })).toBe(answer);
  expect(heard).toEqual(['POST', '/v1/status', 'application/json', request.body]);
  expect(sent).toBe(1);
});

it('puts together what comes in pieces, wherever they break', async () => {
  const bytes = Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"a":"메"}');
  for (let at = 1; at < bytes.length; at += 7) {
    const address = await saying(bytes.subarray(0, at), bytes.subarray(at));
    expect(await postLocal(address, { ...request, signal: AbortSignal.timeout(10_000) })).toBe('{"a":"메"}');
    server?.close();
  }
});

it.each(['', 'HTTP/1.1 200 OK\r\n', 'nonsense\r\n\r\n{}'])('takes %j for no answer', async (text) => {
  const address = await saying(text);
  await expect(postLocal(address, { ...request, signal: AbortSignal.timeout(10_000) })).rejects.toThrow(
    'without a response',
  );
});

it('fails when nothing listens and when the caller aborts', async () => {
  const nowhere = path.join(await tempDir(), 'engine.sock');
  await expect(postLocal(nowhere, { ...request, signal: AbortSignal.timeout(10_000) })).rejects.toMatchObject({
    code: 'ENOENT',
  });
  const silent = await listening(net.createServer(() => undefined));
  const over = new AbortController();
  const asked = postLocal(silent, { ...request, signal: over.signal, onSent: () => over.abort() });
  await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
});
