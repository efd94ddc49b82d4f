import { ProxyAgent, request } from 'undici';
import { CometError } from '../../common/errors.ts';
import { isRecord } from '../../common/text.ts';
import { createAssembler, createSseDecoder } from '../../proxy/index.ts';
import type { Json } from '../../test/mock-anthropic/index.ts';
import { PROJECT_DIR, RECORDING, type StoryRound, type StorySession, type StoryTurn } from './story.ts';

export interface SentRequest {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly prompt: string;
}

const MODEL = 'claude-opus-5-5';
const BETAS =
  'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,effort-2025-11-24';
const CONTROL = { type: 'ephemeral', ttl: '1h' };
const REMINDER = "<system-reminder>\n# currentDate\nToday's date is 2026-11-02.\n</system-reminder>\n";
const DEFERRED = 'The following deferred tools are available via ToolSearch:\nNotebookEdit\nWebSearch';
// More rounds than any turn of the story has: a model that calls tools for ever is a defect.
const MOST_ROUNDS = 12;

/**
 * Behaves on the wire like Claude Code 2.1.197 with a subscription: the whole history each time, history as strings,
 * the newest user message as blocks with the third breakpoint, thinking kept with its signatures.
 */
export function createClient(way: Way, session: StorySession, onRequest: (request: SentRequest) => void) {
  const history: Json[] = [];
  const headers = getHeaders(session.id);

  const ask = async (prompt: string): Promise<readonly Json[]> => {
    const body = Buffer.from(JSON.stringify(getBody(session.id, history)));
    onRequest({ body, headers, prompt });
    return await post(way, headers, body);
  };

  return {
    /** Plays one turn, tool rounds included; resolves with the text of the last answer. @throws CometError */
    async play(turn: StoryTurn): Promise<string> {
      history.push(...promptMessages(turn.prompt, history.length === 0));
      for (let at = 0; at < MOST_ROUNDS; at += 1) {
        const content = await ask(turn.prompt);
        history.push({ role: 'assistant', content });
        const calls = content.filter((block) => block.type === 'tool_use');
        if (calls.length === 0) return getText(content);
        history.push({ role: 'user', content: getResults(calls, turn.rounds[at]) });
      }
      throw new CometError('upstream_failed', 'the mock upstream never ended its tool calls');
    },
  };
}

function promptMessages(prompt: string, first: boolean): readonly Json[] {
  const text = { type: 'text', text: prompt };
  if (!first) return [{ role: 'user', content: [text] }];
  return [
    { role: 'user', content: [{ type: 'text', text: REMINDER }, text] },
    { role: 'system', content: DEFERRED },
  ];
}

/** The tools "run": the story knows what each prints. */
function getResults(calls: readonly Json[], round: StoryRound | undefined): readonly Json[] {
  return calls.map((call, at) => {
    const tool = round?.tools[at];
    return {
      tool_use_id: call.id,
      type: 'tool_result',
      content: tool?.result ?? '',
      ...(tool?.isError && { is_error: true }),
    };
  });
}

function getBody(sessionId: string, history: readonly Json[]): Json {
  return {
    model: MODEL,
    messages: asSent(history),
    system: systemBlocks(history.length),
    tools: RECORDING.tools,
    metadata: { user_id: JSON.stringify({ device_id: 'd'.repeat(64), account_uuid: '', session_id: sessionId }) },
    max_tokens: 64_000,
    thinking: { type: 'adaptive' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    output_config: { effort: 'high' },
    stream: true,
  };
}

function asSent(history: readonly Json[]): readonly Json[] {
  const newest = history.findLastIndex((message) => message.role === 'user');
  return history.map((message, index) => {
    if (message.role !== 'user' || !Array.isArray(message.content)) return message;
    const blocks = message.content.filter(isRecord);
    if (index === newest)
      return { ...message, content: [...blocks.slice(0, -1), { ...blocks.at(-1), cache_control: CONTROL }] };
    return blocks.length === 1 && blocks[0]?.type === 'text' ? { ...message, content: blocks[0].text } : message;
  });
}

function systemBlocks(messages: number): readonly Json[] {
  const attribution = `x-anthropic-billing-header: cc_version=2.1.197.476; cc_entrypoint=cli; cch=${String(messages).padStart(5, '0')};`;
  const environment = `# Environment\nYou have been invoked in the following environment:\n - Primary working directory: ${PROJECT_DIR}\n - Is a git repository: true\n - Platform: linux\n`;
  return [
    { type: 'text', text: attribution },
    { type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude." },
    { type: 'text', text: RECORDING.system, cache_control: { ...CONTROL, scope: 'global' } },
    { type: 'text', text: environment, cache_control: CONTROL },
  ];
}

function getHeaders(sessionId: string): Readonly<Record<string, string>> {
  return {
    'anthropic-beta': BETAS,
    'anthropic-version': '2023-06-01',
    // No real key: the mock upstream only tells accounts apart by it.
    'x-api-key': 'demo',
    'content-type': 'application/json',
    'user-agent': 'claude-cli/2.1.197 (external, cli)',
    'x-app': 'cli',
    'x-claude-code-session-id': sessionId,
  };
}

function getText(content: readonly Json[]): string {
  return content.flatMap((block) => (block.type === 'text' ? String(block.text) : [])).join('\n');
}

const MESSAGES = 'https://api.anthropic.com/v1/messages?beta=true';
const TIMEOUT_MS = 20_000;
const ERROR_BYTES = 2_048;

export interface Way {
  /** The guard's. */
  readonly port: number;
  readonly token: string;
  /** PEM of the bundle that Claude Code is told to trust. */
  readonly ca: string;
}

/**
 * The content of an answer, asked for the way Claude Code does: CONNECT with the proxy token, TLS against our bundle,
 * HTTP/1.1, SSE.
 * @throws CometError `upstream_failed` for anything but a whole answer
 */
async function post({ port, token, ca }: Way, headers: Readonly<Record<string, string>>, body: Buffer) {
  const basic = `Basic ${Buffer.from(`comet-cc:${token}`).toString('base64')}`;
  const dispatcher = new ProxyAgent({ uri: `http://127.0.0.1:${port}`, token: basic, requestTls: { ca } });
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await request(MESSAGES, { method: 'POST', headers, body, dispatcher, signal });
    const bytes = Buffer.from(await response.body.arrayBuffer());
    const assembler = createAssembler();
    for (const event of createSseDecoder().push(bytes)) assembler.push(event);
    const { message, complete } = assembler.result();
    if (complete && message !== null) return message.content;
    const problem = `a request came back with status ${response.statusCode}: ${bytes.toString('utf8', 0, ERROR_BYTES)}`;
    throw new CometError('upstream_failed', problem);
  } finally {
    await dispatcher.destroy();
  }
}
