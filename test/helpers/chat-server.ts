import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ChatRequest {
  readonly path: string;
  readonly authorization: string;
  readonly body: {
    readonly model: string;
    readonly messages: readonly { readonly role: string; readonly content: string }[];
    readonly response_format?: { readonly type: string };
  };
}

/** A stand-in for an endpoint that speaks OpenAI's chat completions. */
export interface ChatServer {
  readonly baseUrl: string;
  readonly requests: ChatRequest[];
  close(): Promise<void>;
}

export type ChatAnswer = (request: ChatRequest, response: http.ServerResponse, nth: number) => void;

export async function chatServer(answer: ChatAnswer): Promise<ChatServer> {
  const requests: ChatRequest[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const { authorization = '' } = request.headers;
      const seen = { path: request.url ?? '', authorization, body: JSON.parse(text || '{}') as ChatRequest['body'] };
      requests.push(seen);
      answer(seen, response, requests.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** What the sensor or the compacter is answered with, by what its rules ask for. */
export function answerFor({ body }: ChatRequest): object {
  // The list of models.
  if (!('messages' in body)) return { data: [] };
  const [system, user] = body.messages.map((message) => message.content) as [string, string];
  if (/detailed summary/.test(system)) return { detail: 'It listens on 5433. The user said so. Nothing is open.' };
  if (/logic_flow/.test(system)) return { logic_flow: 'BROKEN', load_level: 3, redundancy_detected: false };
  const turns = [...new Set([...user.matchAll(/^\[(t\d+)\]/gm)].map((match) => match[1] as string))];
  const fact = { concept: 'port', value: '5433', polarity: 'positive', evidence: turns.slice(0, 1) };
  const node = {
    summary: 'the shop database listens on 5433',
    trigger: 'When I connect to the shop database',
    topic_tags: ['database'],
    importance: 'HIGH',
    recall_mode: 'active',
    turns,
    facts: [fact],
  };
  return { nodes: [node], brief: { active: [{ text: 'shop on 5433', sources: turns.slice(0, 1) }], hints: [] } };
}

export function send(response: http.ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

export function completion(content: unknown, more: object = {}): object {
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return { choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }], usage, ...more };
}
