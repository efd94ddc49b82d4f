import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import http, { type IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { createAssembler, createSseDecoder } from '../../proxy/http/response.ts';
import {
  findHeadTokens,
  type PastConversation,
  type PastMessage,
  type PastRequest,
} from '../../proxy/transcript/index.ts';
import { makeTestCerts } from '../../test/helpers/certs.ts';
import { type AnswerBlock, createJudge, createStandin } from '../../test/mock-anthropic/index.ts';
import { type Daemon, startDaemon } from '../latency/daemon.ts';
import { open } from '../latency/way.ts';
import { buildRequest, SUMMARY, THINKING } from './play.ts';

interface KillOptions {
  readonly model: string;
  readonly ttl: '5m' | '1h';
  readonly kills: number;
}

export interface Killed {
  readonly kills: number;
  readonly requests: number;
  /** Sent by the client again, because the connection ended. */
  readonly repeated: number;
  /** By the mock API, of requests that it takes untouched. */
  readonly refusals: readonly string[];
  /** Changed by the product, and sent as received. */
  readonly rewritten: number;
  readonly untouched: number;
  /** From the kill to the answer. */
  readonly recoveredMs: readonly number[];
  /** Resident memory after that many sessions. */
  readonly engineMb: readonly { readonly sessions: number; readonly mb: number }[];
  /** Warnings of Node about listeners, in the logs of guard and engine. */
  readonly listenerWarnings: number;
}

interface Due {
  readonly conversation: PastConversation;
  readonly request: PastRequest;
}

/** Answers with the thinking that the mock API signed for one session. */
type Signed = Map<PastMessage, PastMessage>;

/** Five exits within ten minutes are a crash loop, in which the guard tunnels: the daemon starts again before. */
const KILLS_A_LIFE = 4;
const TRIES = 20;
/** After the start of a request, during which it dies. */
const LATEST_MS = 50;
/** When the engine is killed: before the request, while it is rewritten or answered, after its answer. */
const PHASES = ['before', 'during', 'after'] as const;

/** Plays conversations at the same time through the built daemon, whose engine is killed with SIGKILL meanwhile. */
export async function playWithKills(
  groups: readonly (readonly PastConversation[])[],
  { model, ttl, kills }: KillOptions,
): Promise<Killed> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'cc-kill-'));
  const certs = makeTestCerts(['127.0.0.1', 'localhost', 'api.anthropic.com']);
  /** What the API answers next, by session. */
  const answers = new Map<string, readonly AnswerBlock[]>();
  const api = await createStandin({
    tls: { key: certs.key, cert: certs.cert },
    brain: ({ sessionId }) => ({ kind: 'message', blocks: answers.get(sessionId) ?? SUMMARY }),
  });
  const judge = createJudge({ enforceThinking: false });
  const all = groups.map((group) => group.filter(({ agentId }) => agentId === ''));
  const total = all.flat().reduce((sum, { requests }) => sum + requests.length, 0);
  const every = Math.max(1, Math.floor(total / (kills + 1)));
  const sums = { kills: 0, requests: 0, repeated: 0, rewritten: 0, untouched: 0 };
  const [refusals, recoveredMs, signed] = [[] as string[], [] as number[], new Map<string, Signed>()];
  const engineMb: { readonly sessions: number; readonly mb: number }[] = [];
  const ended = new Set<string>();
  const heads = new Map<PastMessage, number>();
  let daemon = await startDaemon(folder, { port: api.port, caFile: certs.caFile });
  let killsOfLife = 0;
  let enginePid = 0;
  let killing: Promise<void> = Promise.resolve();

  function kill(): void {
    process.kill(enginePid, 'SIGKILL');
    sums.kills += 1;
    killsOfLife += 1;
  }

  /** Between two requests: nothing is on its way while the daemon starts again. */
  async function renew(): Promise<void> {
    await daemon.halt();
    killsOfLife = 0;
    daemon = await startDaemon(folder, { port: api.port, caFile: certs.caFile });
  }

  async function send(conversation: PastConversation, request: PastRequest): Promise<void> {
    const { sessionId } = conversation;
    const [first] = request.messages as [PastMessage];
    const headTokens = heads.get(first) ?? findHeadTokens(conversation);
    heads.set(first, headTokens);
    const index = sums.requests;
    const own = signed.get(sessionId) ?? new Map(signed.get(getOrigin(conversation)));
    signed.set(sessionId, own);
    const messages = request.messages.map((one) => own.get(one) ?? one);
    const { body, headers } = buildRequest(conversation, { ...request, messages }, { model, ttl, index, headTokens });
    if (judge.judge({ body, headers, atMs: request.atMs }).refusal !== null) return;
    sums.requests += 1;
    const phase = sums.kills < kills && index % every === every - 1 ? PHASES[sums.kills % PHASES.length] : undefined;
    answers.set(
      sessionId,
      request.answer === null ? SUMMARY : ([THINKING, ...request.answer.content] as AnswerBlock[]),
    );
    if (phase !== undefined) enginePid = (await daemon.status()).engine.pid;
    if (phase === 'before') kill();
    const fromMs = performance.now();
    if (phase === 'during') killing = after((7 * sums.kills) % LATEST_MS).then(kill);
    const { status, content, repeated } = await ask(headers, body);
    sums.repeated += repeated;
    await killing;
    if (phase !== undefined) recoveredMs.push(performance.now() - fromMs);
    const arrived = api.requests.findLast((one) => one.sessionId === sessionId && one.kind === 'messages');
    if (arrived?.bytes.equals(body)) sums.untouched += 1;
    else sums.rewritten += 1;
    if (status !== 200) {
      refusals.push(arrived?.refusal?.message ?? `status ${status}`);
      for (const message of request.messages) own.delete(message);
    } else if (request.answer !== null) own.set(request.answer, { role: 'assistant', content });
    if (phase === 'after') kill();
  }

  /** As Claude Code: on a connection of its own, again when it ends before an answer. */
  async function ask(headers: Readonly<Record<string, string>>, body: Buffer) {
    for (let repeated = 0; ; repeated += 1) {
      try {
        return { ...(await askOnce(daemon, certs.ca, headers, body)), repeated };
      } catch (error) {
        if (repeated >= TRIES) throw error;
        await after(250);
      }
    }
  }

  try {
    for (const group of all) {
      const due = group
        .flatMap((conversation) => conversation.requests.map((request) => ({ conversation, request })))
        .sort((a, b) => a.request.atMs - b.request.atMs);
      while (due.length > 0) {
        const [first, second] = due as [Due, Due?];
        const isOther = second !== undefined && getOrigin(second.conversation) !== getOrigin(first.conversation);
        await Promise.all(due.splice(0, isOther ? 2 : 1).map((one) => send(one.conversation, one.request)));
        if (killsOfLife >= KILLS_A_LIFE) await renew();
      }
      for (const { sessionId } of group) ended.add(sessionId);
      engineMb.push({ sessions: ended.size, mb: (await daemon.rss()).engine });
    }
    const listenerWarnings = await countWarnings(path.join(daemon.home, 'logs'));
    return { ...sums, refusals, recoveredMs, engineMb, listenerWarnings };
  } finally {
    await daemon.stop();
    await api.close();
    for (const made of [folder, certs.dir]) await rm(made, { recursive: true, force: true });
  }
}

async function countWarnings(logsDir: string): Promise<number> {
  const texts = (await readdir(logsDir)).map((name) => readFile(path.join(logsDir, name), 'utf8'));
  return (await Promise.all(texts)).join('').split('MaxListenersExceededWarning').length - 1;
}

/** The session that a fork was made of, or the session itself. */
function getOrigin({ sessionId }: PastConversation): string {
  return sessionId.replace(/^fork-/, '');
}

async function askOnce(
  { way }: Daemon,
  upstreamCa: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): Promise<{ readonly status: number; readonly content: readonly AnswerBlock[] }> {
  // A tunnel of the guard shows the real host's certificate.
  const secure = await open({ ...way, ca: `${way.ca}\n${upstreamCa}` });
  try {
    const lengths = { ...headers, host: 'api.anthropic.com', 'content-length': String(body.length) };
    const request = http.request({
      method: 'POST',
      path: '/v1/messages?beta=true',
      headers: lengths,
      createConnection: () => secure,
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const status = response.statusCode ?? 0;
    if (status !== 200) return { status, content: [] };
    const assembler = createAssembler();
    for (const event of createSseDecoder().push(bytes)) assembler.push(event);
    const { message } = assembler.result();
    if (message === null || message === undefined || message.stopReason === null)
      throw new Error('the answer was cut off');
    return { status, content: message.content as readonly AnswerBlock[] };
  } finally {
    secure.destroy();
  }
}
