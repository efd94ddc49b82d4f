import { readFile } from 'node:fs/promises';
import { createAssembler, createSseDecoder } from '../../proxy/http/response.ts';
import type { TestHome } from './cli.ts';
import { ask, type Via } from './tls-client.ts';
import type { Json, Upstream } from './transcripts.ts';

/** The daemon as the upstream of a conversation: CONNECT with the token, TLS with the bundle, streamed answers. */
export async function daemonUpstream(home: TestHome): Promise<Upstream> {
  const env = (await home.json(['env', '--shell', 'json'])) as Record<string, string>;
  const url = new URL(env['HTTPS_PROXY'] as string);
  const credentials = Buffer.from(`${url.username}:${url.password}`).toString('base64');
  const via: Via = { port: Number(url.port), connectHeaders: `Proxy-Authorization: Basic ${credentials}\r\n` };
  const ca = await readFile(env['NODE_EXTRA_CA_CERTS'] as string, 'utf8');
  return async (request) => {
    const headers = Object.entries(request.headers).flat();
    const reply = await ask(via, ca, { headers, body: request.bytes });
    if (reply.status !== 200) {
      const { error } = JSON.parse(reply.body.toString('utf8')) as { error: { type: string; message: string } };
      return { refusal: { status: reply.status, type: error.type, message: error.message } as never };
    }
    const assembler = createAssembler();
    for (const event of createSseDecoder().push(reply.body)) assembler.push(event);
    return { refusal: null, content: (assembler.result().message?.content ?? []) as readonly Json[] };
  };
}
