import { randomBytes, randomUUID } from 'node:crypto';
import type { Sent } from './way.ts';

type Json = Readonly<Record<string, unknown>>;

/** A client's side of a main conversation whose turns are one tool round each, `bytes` long in all. */
export interface Conversation {
  /** The next request: prompt and tool result in turn. */
  next(): Sent;
  /** Another tool round of the newest prompt. */
  round(): Sent;
  /** What would follow the newest request in a tool loop, another each time; nothing is remembered of it. */
  loop(): Sent;
}

const NUMBERS = 100_000;
const ROUND_BYTES = 1_000;
const CONTROL = { type: 'ephemeral', ttl: '1h' };
const WORDS =
  'parser retries timeout invoice gateway schema ledger cursor webhook replica shard digest quorum lease'.split(' ');

/**
 * @param turnBytes  what one turn adds to the history
 * @param numbers    how many different numbers stand in it: most words that memory learns are these
 */
export function createConversation(turnBytes: number, numbers = NUMBERS): Conversation {
  const sessionId = randomUUID();
  const history: Json[] = [];
  let call: Json | null = null;

  const sent = (messages: readonly Json[], answer: Json | null): Sent => ({
    headers: getHeaders(sessionId, answer),
    body: Buffer.from(JSON.stringify(getBody(sessionId, messages))),
  });
  const newCall = (): Json => ({
    id: `toolu_${randomBytes(9).toString('hex')}`,
    name: 'Bash',
    input: { command: text(60, numbers) },
  });
  const said = (tool: Json | null): Json => {
    const done = { type: 'text', text: 'Done.' };
    return { role: 'assistant', content: tool === null ? [done] : [done, { type: 'tool_use', ...tool }] };
  };
  const result = (tool: Json, bytes: number): Json => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: tool.id, content: text(bytes, numbers) }],
  });

  return {
    next() {
      if (call === null) {
        if (history.length > 0) history.push(said(null));
        history.push({ role: 'user', content: [{ type: 'text', text: `Look at the ${text(120, numbers)}` }] });
        call = newCall();
        return sent(history, call);
      }
      history.push(said(call), result(call, turnBytes));
      call = null;
      return sent(history, null);
    },
    round() {
      if (call === null) throw new Error('a round follows a prompt');
      history.push(said(call), result(call, ROUND_BYTES));
      call = newCall();
      return sent(history, call);
    },
    loop() {
      const tool = newCall();
      return sent([...history, said(tool), result(tool, ROUND_BYTES)], newCall());
    },
  };
}

/** A request of a command that Claude Code runs. */
export function stranger(bytes: number): Sent {
  const { headers, body } = lone(bytes);
  return { headers: { ...headers, 'user-agent': 'curl/8.5.0' }, body };
}

/** A request that is no conversation of the user's; its text is new each time. */
export function lone(bytes: number): Sent {
  const body = {
    model: 'claude-haiku-4-5-20251001',
    max_tokens: 64,
    messages: [{ role: 'user', content: text(bytes) }],
  };
  return { headers: getHeaders(randomUUID(), null), body: Buffer.from(JSON.stringify(body)) };
}

function getBody(sessionId: string, messages: readonly Json[]): Json {
  const last = messages.length - 1;
  return {
    model: 'claude-opus-5-5',
    messages: messages.map((message, at) => (at === last ? marked(message) : message)),
    system: [
      { type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude.", cache_control: CONTROL },
    ],
    tools: [{ name: 'Bash', description: 'Runs a command.', input_schema: { type: 'object', properties: {} } }],
    metadata: { user_id: JSON.stringify({ device_id: 'd'.repeat(64), account_uuid: '', session_id: sessionId }) },
    max_tokens: 64_000,
    stream: true,
  };
}

function marked(message: Json): Json {
  const blocks = message.content as readonly Json[];
  return { ...message, content: blocks.map((block) => ({ ...block, cache_control: CONTROL })) };
}

function getHeaders(sessionId: string, answer: Json | null): Readonly<Record<string, string>> {
  return {
    'anthropic-version': '2023-06-01',
    'content-type': 'application/json',
    'user-agent': 'claude-cli/2.1.197 (external, cli)',
    'x-app': 'cli',
    'x-claude-code-session-id': sessionId,
    ...(answer === null ? {} : { 'x-bench-answer': Buffer.from(JSON.stringify(answer)).toString('base64') }),
  };
}

function text(bytes: number, numbers = NUMBERS): string {
  let made = '';
  while (made.length < bytes) {
    made += `${WORDS[Math.floor(Math.random() * WORDS.length)]} ${Math.floor(Math.random() * numbers)}${Math.random() < 0.1 ? '.\n' : ' '}`;
  }
  return made.slice(0, bytes);
}
