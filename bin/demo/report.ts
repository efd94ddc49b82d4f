import { dollars, isRecord, oneLine, sha256 } from '../../common/text.ts';
import { applyEdits, type Receipt, scanBody, scanObject } from '../../proxy/index.ts';
import { blocksOf, createJudge, type Json, type ServedRequest } from '../../test/mock-anthropic/index.ts';
import { count, inboxLine } from '../terminal/format.ts';
import { table, wrapped } from '../terminal/table.ts';
import type { Term } from '../terminal/term.ts';
import type { SentRequest } from './client.ts';
import type { Channel, RecalledLine } from './response.ts';
import type { Played, PlayedStory, Stage } from './run.ts';
import { isQuestion, STORY } from './story.ts';

/** What `--json` prints. */
export type Outcome = Awaited<ReturnType<typeof getOutcome>>;
type QuestionOutcome = Outcome['questions'][number];

interface Evidence extends PlayedStory {
  /** By prompt. */
  readonly found: ReadonlyMap<string, RecalledLine>;
  /** As the client sent them. */
  readonly sent: readonly (SentRequest & { readonly atMs: number })[];
  readonly keep: boolean;
  readonly startedMs: number;
}

export async function getOutcome(stage: Stage, evidence: Evidence) {
  const { sent, morning } = evidence;
  const bodies = sent.map(({ body }) => body);
  const direct = getDirectBill(sent);
  const through = getBill(stage.standin.requests.filter(({ kind }) => kind === 'messages'));
  const { epochs, cuts } = getEpochs(stage.standin.requests);
  const nodes = await stage.engine.call('nodes/list', { all: true });
  const { tokens, savings } = await stage.engine.call('status', {});
  const receipts = checkReceipts(await stage.engine.call('receipts/list', {}), bodies, stage.standin.requests);
  const restored = await checkRestored(stage, bodies);
  const turns = STORY.flatMap((session) => session.turns);
  const questions = turns.filter(isQuestion).map(({ prompt, right }) => {
    const line = evidence.found.get(prompt) ?? null;
    const answer = evidence.answers.get(prompt) ?? '';
    const asked = sent.findLast((request) => request.prompt === prompt);
    return {
      question: prompt,
      /** What came back to the client. */
      answer,
      answered: right.test(answer),
      node_id: line?.nodeId ?? null,
      summary: nodes.find((node) => node.node_id === line?.nodeId)?.summary ?? null,
      channel: line?.channel ?? null,
      line: line?.line ?? null,
      /** Whether the answer stood in what Claude Code itself sent with the question. */
      in_client_request: right.test(asked?.body.toString('utf8') ?? ''),
    };
  });
  const problems = [
    ...(through.refused > 0 ? [`${through.refused} requests were refused`] : []),
    ...(cuts === 0 ? ['nothing was cut'] : []),
    ...(morning?.file ? [] : ['the last morning has no brief']),
    ...(receipts.true < receipts.checked ? [`${receipts.checked - receipts.true} receipts are wrong`] : []),
    ...(restored.equal < restored.messages ? [`${restored.messages - restored.equal} messages are not as sent`] : []),
    ...questions.filter(({ answered }) => !answered).map(({ question }) => `nothing answered "${question}"`),
    ...questions
      .filter(({ node_id, summary }) => node_id !== null && summary === null)
      .map(({ node_id }) => `there is no memory ${node_id}`),
  ];
  return {
    ok: problems.length === 0,
    problems,
    sessions: STORY.length,
    turns: turns.length,
    requests: through.requests,
    refused: through.refused,
    tokens: { received: direct.tokens, sent: through.tokens, saved: direct.tokens - through.tokens },
    cache: {
      read: through.cacheRead,
      written: through.cacheWrite,
      direct: { read: direct.cacheRead, written: direct.cacheWrite },
    },
    /** In tokens of uncached input. */
    cost: {
      direct: Math.round(direct.cost),
      through: Math.round(through.cost),
      saved: Math.round(direct.cost - through.cost),
    },
    /** What the engine's own ledger says of the same requests. */
    ledger: { received: tokens.original, sent: tokens.sent, saved_usd: savings.total.net_saved_usd },
    receipts,
    restored,
    // As many as memory ls shows: what tools did in a turn stands below its node.
    nodes: nodes.filter(({ parent_node_id }) => parent_node_id === null).length,
    epochs,
    cuts,
    questions,
    /** What the last session began with. */
    morning,
    duration_ms: Date.now() - evidence.startedMs,
    home: evidence.keep ? stage.paths.home : null,
  };
}

/** Holds every receipt against what left the client and what arrived upstream. */
function checkReceipts(
  receipts: readonly Receipt[],
  bodies: readonly Buffer[],
  served: readonly Pick<ServedRequest, 'bytes'>[],
): { checked: number; true: number } {
  const received = new Map(bodies.map((body) => [sha256(body), body]));
  const arrived = new Set(served.map(({ bytes }) => sha256(bytes)));
  const isTrue = (receipt: Receipt): boolean => {
    const body = received.get(receipt.received.sha256);
    if (body === undefined) return false;
    const edits = receipt.edits.map(({ start, end, text }) => ({ start, end, bytes: Buffer.from(text) }));
    const sent = sha256(applyEdits(body, edits));
    return sent === receipt.sent.sha256 && arrived.has(sent);
  };
  return { checked: receipts.length, true: receipts.filter(isTrue).length };
}

/** Holds the restored messages of each session against every form in which the client sent them. */
async function checkRestored(stage: Pick<Stage, 'engine'>, bodies: readonly Buffer[]) {
  const sent = new Set(bodies.flatMap(contentDigests));
  let messages = 0;
  let equal = 0;
  for (const session of STORY) {
    const last = bodies.findLast((body) => body.includes(session.id));
    // The last answer was not sent any more.
    const count = last === undefined ? 0 : contentDigests(last).length;
    const restored = await stage.engine.call('sessions/restore', { sessionId: session.id });
    messages += count;
    equal += restored.slice(0, count).filter((message) => sent.has(message.sha256)).length;
  }
  return { messages, equal };
}

function contentDigests(body: Buffer): string[] {
  return (scanBody(body)?.messages ?? []).flatMap((at) => {
    const content = scanObject(body, at.start)?.values.get('content');
    return content === undefined ? [] : [sha256(body.subarray(content.start, content.end))];
  });
}

/** Prompts only; tokens as the mock upstream counts them, cost in tokens of uncached input. */
type Bill = Readonly<typeof NO_COST>;

const NO_COST = { requests: 0, refused: 0, tokens: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };

/** The same conversation sent direct: the client's own bodies before a judge with a cache of its own. */
function getDirectBill(sent: Evidence['sent']): Bill {
  // What the proxy changed is not in these bodies, so the signatures of the answers cannot fit them.
  const judge = createJudge({ enforceThinking: false });
  const verdicts = sent.map((request) => judge.judge(request));
  return getBill(verdicts.map((verdict) => (verdict.refusal === null ? verdict : { usage: null, cost: 0 })));
}

/** `usage` is null where a request was refused. */
type Billed = Pick<ServedRequest, 'cost'> & {
  readonly usage: Omit<NonNullable<ServedRequest['usage']>, 'output'> | null;
};

function getBill(requests: readonly Billed[]): Bill {
  return requests.reduce((bill, { usage, cost }) => {
    const cacheWrites = usage === null ? 0 : usage.cacheWrite5m + usage.cacheWrite1h;
    return {
      requests: bill.requests + 1,
      refused: bill.refused + (usage === null ? 1 : 0),
      tokens: bill.tokens + (usage === null ? 0 : usage.input + usage.cacheRead + cacheWrites),
      cacheRead: bill.cacheRead + (usage?.cacheRead ?? 0),
      cacheWrite: bill.cacheWrite + cacheWrites,
      cost: bill.cost + cost,
    };
  }, NO_COST);
}

/** Number of epochs of a session: its first request, and every cut. */
function getEpochs(requests: readonly ServedRequest[]): { readonly epochs: number; readonly cuts: number } {
  const preambles = new Set(requests.flatMap((request) => getPreamble(request.body)));
  return { epochs: new Set(requests.map((request) => request.sessionId)).size + preambles.size, cuts: preambles.size };
}

function getPreamble(body: Json | null): string[] {
  const messages = Array.isArray(body?.messages) ? body.messages.filter(isRecord) : [];
  const users = messages.filter((message) => message.role === 'user');
  const begins = users.map((message) => String(blocksOf(message.content)[0]?.text ?? ''));
  return begins.filter((text) => text.startsWith('<comet-cc-memory'));
}

const EVERY = 10;
const WIDTH = 80;
const BAR = 24;

/** One line that renews itself on a terminal, else a line every ten turns. */
export function showTurn(term: Term, { turns, of, session }: Played): void {
  const done = Math.round((BAR * turns) / of);
  if (process.stderr.isTTY)
    term.progress(`[${'='.repeat(done)}${' '.repeat(BAR - done)}] turn ${turns} of ${of}, session ${session}`);
  else if (turns % EVERY === 0) term.say(`comet-cc demo: turn ${turns} of ${of}`);
}

const CHANNELS: Readonly<Record<Channel, string>> = {
  recalled: 'recalled for this prompt',
  preamble: 'in the summary of the trimmed turns',
  'system block': 'in the memory block of the system prompt',
  conversation: 'still in the conversation itself',
};

export function printOutcome(outcome: Outcome, term: Term): void {
  const width = Math.min(term.width, WIDTH);
  const lines = [
    ...opening(outcome, width),
    '',
    ...figures(outcome, width, term),
    '',
    term.paint('bold', 'Asked late, told early'),
    ...outcome.questions.flatMap((answered, at) => ['', ...answeredLines(answered, at + 1, width, term)]),
    '',
    ...morningLines(outcome, width, term),
    ...closing(outcome, width),
  ];
  for (const line of lines) term.out(line);
}

function opening({ turns, sessions, requests, duration_ms }: Outcome, width: number): string[] {
  const text = `A scripted coding conversation, ${turns} turns in ${sessions} sessions (${requests} requests), on three days, played in ${(duration_ms / 1000).toFixed(1)} s through guard, engine, TLS and store, against a mock API that validates and bills like the real one.`;
  return wrapped(text, width);
}

function figures(outcome: Outcome, width: number, { paint }: Term): string[] {
  const { tokens, cache, cost } = outcome;
  const rows: readonly (readonly [string, number, number, string])[] = [
    ['requests', outcome.requests, outcome.requests, ''],
    ['refused', 0, outcome.refused, ''],
    ['prompt tokens', tokens.received, tokens.sent, share(tokens.saved, tokens.received)],
    ['  read from the cache', cache.direct.read, cache.read, ''],
    ['  written to the cache', cache.direct.written, cache.written, ''],
    ['cost, in input tokens', cost.direct, cost.through, share(cost.saved, cost.direct)],
  ];
  const [head = '', ...body] = table(rows, width, [
    { title: '', cell: ([name]) => name },
    { title: 'direct', cell: ([, direct]) => count(direct), right: true },
    { title: 'with comet-cc', cell: ([, , through]) => count(through), right: true },
    { title: '', cell: ([, , , saved]) => saved },
  ]);
  const made = `${count(outcome.nodes)} memories; ${outcome.cuts} trims of older turns.`;
  const { receipts, restored, ledger } = outcome;
  const proved = `${receipts.true} of ${receipts.checked} receipts turn what Claude Code sent into what went upstream; ${restored.equal} of ${restored.messages} messages come back byte for byte. The ledger reckons ${count(ledger.received)} tokens received and ${count(ledger.sent)} sent, ${dollars(ledger.saved_usd)} saved.`;
  return [paint('dim', head), ...body, '', ...wrapped(made, width), ...wrapped(proved, width)];
}

function answeredLines(answered: QuestionOutcome, number: number, width: number, { paint }: Term): string[] {
  const indent = '   ';
  const inner = (text: string): string[] => wrapped(text, width - indent.length).map((line) => indent + line);
  const [first = '', ...more] = inner(answered.question);
  const title = [`${number}. ${first.trimStart()}`, ...more].map((line) => paint('bold', line));
  if (answered.line === null || answered.channel === null)
    return [...title, ...inner(answered.answer).map((line) => paint('red', line))];
  const full = answered.node_id === null ? [] : [`in full: comet-cc memory show ${answered.node_id} --depth 2`];
  const sent = answered.in_client_request ? 'trimmed from what Claude Code sent' : 'not in what Claude Code sent';
  return [
    ...title,
    ...inner(oneLine(answered.answer)),
    ...inner(`${CHANNELS[answered.channel]}; ${sent}:`),
    ...inner(oneLine(answered.line)).map((line) => paint('green', line)),
    ...full.map((line) => indent + paint('dim', line)),
  ];
}

function morningLines({ morning }: Outcome, width: number, { paint }: Term): string[] {
  if (morning === null) return [];
  const page = morning.inbox.split('\n').filter((line) => line !== '' && line !== '## Today');
  const lines = page.flatMap((line) => {
    const text = inboxLine(line);
    if (text.startsWith('#')) return [`   ${paint('bold', text.replace(/^#+ /, ''))}`];
    const indent = text.startsWith(' ') ? '       ' : '   ';
    const parts = wrapped(oneLine(text), width - indent.length - 2);
    return parts.map((part, at) => `${indent}${at === 0 ? '' : '  '}${part}`);
  });
  return [paint('bold', 'On the third morning, in the inbox (comet-cc inbox)'), '', ...lines, ''];
}

function closing({ home }: Outcome, width: number): string[] {
  const cost = wrapped(
    'Cost counts a cached token as the model is priced: 0.05 when read, 2 when written for an hour. The story has no pauses, in which most trims are free, so here a trim does not wait until it can lose at most 2 % (trim.lossShare 1). Memory was written without a model here; with Claude Code, claude -p writes it on your own plan.',
    width,
  );
  const gone = 'The memories are gone with their temporary home; to look around in them: comet-cc demo --keep';
  if (home === null) return [...cost, '', ...wrapped(gone, width)];
  const keep = [`Kept: ${home} (the daemon is stopped). Look inside with:`];
  const starting = `  export COMET_CC_HOME=${home} COMET_CC_LLM=local`;
  return [...cost, '', ...keep, starting, '  comet-cc start --port 0 && comet-cc memory ls', '  comet-cc stop'];
}

function share(saved: number, of: number): string {
  if (of === 0) return '';
  const percent = Math.round((100 * Math.abs(saved)) / of);
  return saved >= 0 ? `${percent} % less` : `${percent} % more`;
}
