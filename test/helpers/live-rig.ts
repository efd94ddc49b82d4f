import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as after } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createAssembler, createSseDecoder } from '../../proxy/http/response.ts';
import { type Brain, createStandin, type Standin } from '../mock-anthropic/index.ts';
import { createHomeWithCerts, LOOK_MS, type TestHome } from './cli.ts';
import { ask, type Reply, type Via } from './tls-client.ts';
import { type ClientRequest, type Json, makeRequest, seededPlan } from './transcripts.ts';

/** The built daemon between a client of ours and the API stand-in, which answers with signed thinking. */
export interface LiveRig {
  readonly home: TestHome;
  readonly standin: Standin;
  readonly via: Via;
  readonly ca: string;
  send(bytes: Buffer | string, headers: Readonly<Record<string, string>>): Promise<Reply>;
  /** What the engine says, once it is there to say it. */
  status(): Promise<LiveStatus>;
  statusUntil(test: (status: LiveStatus) => boolean): Promise<LiveStatus>;
  /** Waits until all that was captured is compacted and indexed. */
  flush(): Promise<void>;
  /** Files below the home that contain `text`. */
  filesWith(text: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface LiveStatus {
  readonly pid: number;
  readonly engine: { readonly state: string; readonly pid: number; readonly restarts: number };
  readonly requests: Readonly<Record<'total' | 'rewritten' | 'passed_through' | 'failed_open', number>>;
  readonly llm: { readonly backend: string; readonly deferred: number; readonly last_error: string };
  readonly queue: { readonly sensor: number; readonly compacter: number; readonly indexer: number };
  readonly nodes: number;
  readonly problems: readonly { readonly file: string; readonly message: string }[];
}

/** One terminal with Claude Code in it: it keeps the transcript and tries again what was cut. */
export interface Terminal {
  readonly sessionId: string;
  /** The next prompt's request, without sending it. */
  next(prompt: string): ClientRequest;
  /** Sends a prompt until it is answered; resolves with the tries that took. */
  say(prompt: string): Promise<number>;
  /** Takes an answer to what `next` gave into the transcript. */
  take(prompt: string, reply: Reply): void;
  /** The same transcript in a second terminal, with another first prompt where one is given. */
  twin(first?: string): Terminal;
}

const thinkingBrain: Brain = (request) => ({
  kind: 'message',
  blocks: [
    { type: 'thinking', thinking: `I look at request ${request.index}.` },
    { type: 'text', text: `Understood, noted for request ${request.index}.` },
  ],
});

export async function createLiveRig(
  env: Readonly<Record<string, string>> = {},
  brain: Brain = thinkingBrain,
): Promise<LiveRig> {
  const standin = await createStandin({ brain });
  const home = await createHomeWithCerts({
    COMET_CC_UPSTREAM: standin.origin,
    COMET_CC_TRIM_MODE: 'aggressive',
    COMET_CC_TRIM_TRIGGER_TOKENS: '2000',
    COMET_CC_TRIM_KEEP_TOKENS: '500',
    ...env,
  });
  await home.json(['start', '--json']);
  const access = (await home.json(['env', '--shell', 'json'])) as Record<string, string>;
  const url = new URL(access['HTTPS_PROXY'] as string);
  const credentials = Buffer.from(`${url.username}:${url.password}`).toString('base64');
  const via: Via = { port: Number(url.port), connectHeaders: `Proxy-Authorization: Basic ${credentials}\r\n` };
  const ca = await readFile(access['NODE_EXTRA_CA_CERTS'] as string, 'utf8');
  const status = async (): Promise<LiveStatus> => {
    for (;;) {
      const now = (await home.status()) as LiveStatus;
      if (now.engine.state === 'healthy') return now;
      await after(LOOK_MS);
    }
  };
  return {
    home,
    standin,
    via,
    ca,
    status,
    send: (bytes, headers) => ask(via, ca, { headers: Object.entries(headers).flat(), body: bytes }),
    async statusUntil(test) {
      for (;;) {
        const now = await status();
        if (test(now)) return now;
        await after(LOOK_MS);
      }
    },
    flush: () => home.flush(),
    async filesWith(text) {
      // grep ends with 1 where it finds nothing.
      const found = await promisify(execFile)('grep', ['-rlF', '--', text, home.home]).catch(() => ({ stdout: '' }));
      return found.stdout.split('\n').filter(Boolean);
    },
    async close() {
      await home.close();
      await standin.close();
    },
  };
}

const FILLER = 'The deployment notes for this service follow the usual pattern. '.repeat(30);

/** Says `turns` long prompts, `topic` in each, and lets memory catch up before the last: then a plan is in force. */
export async function longTalk(rig: LiveRig, terminal: Terminal, options: { topic: string; turns?: number }) {
  const turns = options.turns ?? 8;
  for (let turn = 0; turn < turns; turn += 1) {
    if (turn === turns - 2) await rig.flush();
    await terminal.say(`We decided that ${options.topic} ${turn} listens on port ${4711 + turn}. ${FILLER}`);
  }
}

/** In a project of its own unless `cwd` names one. */
export function openTerminal(rig: LiveRig, options: { readonly cwd?: string } = {}): Terminal {
  const sessionId = crypto.randomUUID();
  const plan = seededPlan(5, { turns: 1, models: ['claude-opus-4-8'] });
  return getTerminal(rig, { ...plan, sessionId, cwd: options.cwd ?? `/home/ada/${sessionId}` }, []);
}

function getTerminal(rig: LiveRig, plan: ReturnType<typeof seededPlan>, past: readonly Json[]): Terminal {
  const history = [...past];
  const asked = (prompt: string): Json => ({ role: 'user', content: [{ type: 'text', text: prompt }] });
  const next = (prompt: string): ClientRequest =>
    makeRequest(plan, [...history, asked(prompt)], { index: history.length, turn: 0, round: 0, answer: [] });
  const take = (prompt: string, reply: Reply): void => {
    if (reply.status !== 200) throw new Error(`${reply.status}: ${reply.body.toString('utf8').slice(0, 500)}`);
    const assembler = createAssembler();
    for (const event of createSseDecoder().push(reply.body)) assembler.push(event);
    const { message } = assembler.result();
    history.push(asked(prompt), { role: 'assistant', content: message?.content ?? [] });
  };
  return {
    sessionId: plan.sessionId,
    next,
    take,
    async say(prompt) {
      const request = next(prompt);
      for (let tries = 1; ; tries += 1) {
        const reply = await rig.send(request.bytes, request.headers).catch((error: unknown) => {
          if (tries === 20) throw error;
          return null;
        });
        if (reply === null) continue;
        take(prompt, reply);
        return tries;
      }
    },
    twin: (first) => getTerminal(rig, plan, first === undefined ? history : [asked(first), ...history.slice(1)]),
  };
}
