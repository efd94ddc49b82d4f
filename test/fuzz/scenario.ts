import fc from 'fast-check';
import type { RewriterConfig } from '../../proxy/rewrite/index.ts';
import type { RetrievalMode } from '../../proxy/rewrite/render.ts';
import { createFakeMemory } from '../helpers/fake-memory.ts';
import { findRefusal } from '../mock-anthropic/rules.ts';
import { BETAS, isNew, MARKS, NEW_BETAS, type Version } from './body.ts';
import { compare, getGaps, getSystem, isBoundAlike } from './compare.ts';
import { createTerminal, INSTRUCTIONS, isPrompt, type Said, type Terminal, type Turn } from './fake-client.ts';
import { createWireRig, type Exchange, earlyCuts, type Json, type Route, type WireRig } from './rewriter-rig.ts';
import { type Random, randomFrom, randomTurn, WIDE_BETAS, widen } from './turns.ts';

/** What a user or the machine may do next; a frequent action is listed several times. */
const ACTIONS = [
  ...Array<'turn'>(12).fill('turn'),
  ...Array<'loop'>(3).fill('loop'),
  ...Array<'restart'>(2).fill('restart'),
  ...Array<'wait'>(2).fill('wait'),
  'retry',
  'overloaded',
  'count',
  'fork',
  'rewind',
  'compact',
  'clear',
  'other terminal',
  'same session',
  'model',
  'effort',
  'bypass',
  'late',
  'aside',
  'subagent',
  'errand',
  'results cleared',
  'thinking stripped',
  'marks',
  'update',
  'mode',
  'side by side',
  'settings',
] as const;

/** One generated conversation: plain JSON, so that a counterexample is kept as a fixture. */
export interface Scenario {
  readonly seed: number;
  readonly model: string;
  /** Absent in older counterexamples. */
  readonly version?: Version;
  readonly ttl: '5m' | '1h';
  /** With blocks and ends that Claude Code's own requests seldom have. Absent in older counterexamples. */
  readonly isWide?: boolean;
  readonly retrieval: RetrievalMode;
  readonly margin: number;
  readonly actions: readonly (readonly [(typeof ACTIONS)[number], number])[];
}

/** What the generated conversations met. */
export interface Counts {
  requests: number;
  prompts: number;
  cuts: number;
  /** With the first request that we see. */
  firstCuts: number;
  /** Cuts at a prompt that was sent with tool results. */
  mergedCuts: number;
  roundCuts: number;
  injections: number;
  replays: number;
  ownFaults: number;
}

export const noCounts = (): Counts => ({
  requests: 0,
  prompts: 0,
  cuts: 0,
  firstCuts: 0,
  mergedCuts: 0,
  roundCuts: 0,
  injections: 0,
  replays: 0,
  ownFaults: 0,
});

export function scenarios(models: readonly string[]): fc.Arbitrary<Scenario> {
  const action = fc.tuple(fc.constantFrom(...ACTIONS), fc.nat(60));
  return fc.record({
    seed: fc.nat(),
    model: fc.constantFrom(...models),
    version: fc.constantFrom<Version>('2.1.197', '2.1.332'),
    ttl: fc.constantFrom<'5m' | '1h'>('5m', '1h'),
    isWide: fc.boolean(),
    retrieval: fc.constantFrom<RetrievalMode>('auto', 'auto', 'user-block', 'system-message', 'system-field', 'off'),
    margin: fc.constantFrom(0, 0, 1),
    actions: fc.oneof(
      { weight: 9, arbitrary: fc.array(action, { minLength: 1, maxLength: 9 }) },
      { weight: 1, arbitrary: fc.array(action, { minLength: 10, maxLength: 24 }) },
    ),
  });
}

/** @throws at the first request that breaks an invariant */
export async function runScenario(scenario: Scenario, enforceThinking: boolean, counts: Counts): Promise<void> {
  const { retrieval, margin, model, ttl, version = '2.1.197' } = scenario;
  const cut = earlyCuts({ margin });
  const memory = createFakeMemory({ durable: (turnId) => !turnId.startsWith('0') });
  // With room for one session, every other one is read back from disk.
  const heldSessions = scenario.seed % 2 === 0 ? { heldSessions: 1 } : {};
  const rig = await createWireRig({ config: { retrieval, cut }, enforceThinking, memory, ...heldSessions });
  const headers: Record<string, string> =
    scenario.isWide === true ? { 'anthropic-beta': `${BETAS},${NEW_BETAS},${WIDE_BETAS}` } : {};
  const first = createTerminal(rig, { model, ttl, version, sessionId: sessionId(0), headers });
  const world: World = {
    rig,
    terminals: [first],
    at: 0,
    random: randomFrom(scenario.seed),
    betas: headers,
    wide: scenario.isWide === true ? randomFrom(scenario.seed + 1) : null,
    checked: new Map(),
    counts,
  };
  // Some were begun without us.
  if (scenario.seed % 4 === 3) for (const rounds of [2, 1, 2]) await turn(world, rounds, 'past');
  else await turn(world, 1);
  for (const [action, amount] of scenario.actions) await perform(world, action, amount);
  const [begun] = rig.records;
  if (begun?.kind === 'plan' && begun.plan.cut !== null) counts.firstCuts += 1;
  for (const record of rig.records) {
    if (record.kind === 'plan' && record.plan.cut !== null) counts.cuts += 1;
    if (record.kind === 'plan' && record.plan.cut?.merged === true) counts.mergedCuts += 1;
    if (record.kind === 'plan' && record.plan.rounds.length > 0) counts.roundCuts += 1;
    if (record.kind === 'injections') counts.injections += 1;
  }
}

interface World {
  readonly rig: WireRig;
  readonly terminals: Terminal[];
  at: number;
  readonly random: Random;
  readonly wide: Random | null;
  readonly betas: Readonly<Record<string, string>>;
  /** For each terminal, how many of its requests were checked. */
  readonly checked: Map<Terminal, number>;
  readonly counts: Counts;
}

const MODELS = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-4-8', 'claude-sonnet-4-6', 'claude-haiku-4-5'];
const WAITS_MS = [30_000, 400_000, 7_200_000, 3 * 86_400_000];
/** What a user may set before the next start. */
const SETTINGS: readonly Partial<RewriterConfig>[] = [
  {},
  { cut: null },
  { cut: earlyCuts({ keepTurns: 3, keepTokens: 6_000, keepRounds: 12, keepRoundTokens: 3_000 }) },
  {
    cut: earlyCuts({
      keepTurns: 1,
      keepTokens: 0,
      keepRounds: 1,
      keepRoundTokens: 0,
      triggerTokens: 1,
      minDropShare: 0,
    }),
  },
  { cut: earlyCuts({ triggerTokens: 1_000_000 }) },
  { retrieval: 'off', systemTokens: 0, preambleTokens: 200 },
  { retrieval: 'user-block', costShare: 0, leastTokens: 0 },
];
const ASIDES = ['[SUGGESTION MODE: say what comes next]', 'What was that port again?'];

const TOOL = { name: 'Bash', input_schema: { type: 'object' } };
const UPDATES: readonly Json[] = [
  {},
  { tools: [TOOL] },
  { tools: [TOOL, { name: 'Late', defer_loading: true, input_schema: { type: 'object' } }] },
  { system: 'You help. \n - Primary working directory: /home/ada/app\n' },
  { system: [] },
  { system: '' },
  { system: undefined },
  { container: 'container_1' },
];

/** Two requests at once that go on from the same history, such as two terminals on one session. */
async function sideBySide(world: World, active: Terminal): Promise<void> {
  const other = active.fork(active.shape.sessionId);
  const turns = [1, 2].map((rounds) => randomTurn(world.random, rounds));
  const all = await Promise.all([active.ask(turns[0] as Turn), other.ask(turns[1] as Turn)]);
  for (const exchange of all.flat()) expectTaken(exchange);
  world.checked.set(active, active.said.length);
}

async function perform(world: World, action: (typeof ACTIONS)[number], amount: number): Promise<void> {
  const { rig, terminals } = world;
  const active = terminals[world.at] as Terminal;
  switch (action) {
    case 'turn':
      return turn(world, amount % 3);
    case 'loop':
      return turn(world, 8 + (amount % 20));
    case 'late':
    case 'bypass':
      return turn(world, amount % 3, action === 'late' ? 'late' : 'past');
    case 'retry':
      return expectSame(world, active, 'messages');
    case 'overloaded':
      return expectSame(world, active, 'overloaded');
    case 'count':
      return expectSame(world, active, 'count_tokens');
    case 'restart':
      await rig.restart();
      return expectSame(world, active, 'messages');
    case 'settings':
      await rig.restart(SETTINGS[amount % SETTINGS.length]);
      return expectSame(world, active, 'messages');
    case 'wait':
      rig.clock.nowMs += WAITS_MS[amount % WAITS_MS.length] as number;
      return;
    case 'fork':
      terminals.push(active.fork(sessionId(terminals.length)));
      world.at = amount % 2 === 0 ? terminals.length - 1 : world.at;
      return;
    case 'same session':
      terminals.push(active.fork(active.shape.sessionId));
      return;
    case 'other terminal':
      world.at = amount % terminals.length;
      return;
    case 'rewind':
      return active.rewind(1 + (amount % 4));
    case 'compact':
      expectTaken(await active.compact());
      return;
    case 'clear':
      return active.become({ sessionId: sessionId(terminals.length + amount + 100), entries: [] });
    case 'model':
      return active.become({ model: MODELS[amount % MODELS.length] as string });
    case 'effort':
      return active.become({ effort: amount % 2 === 0 ? 'low' : 'high' });
    case 'aside':
      expectTaken(await active.aside(ASIDES[amount % ASIDES.length] as string));
      return;
    case 'subagent':
      return subagent(world, active);
    case 'errand':
      return errand(world, active, amount);
    case 'results cleared':
      return active.clearResults();
    case 'thinking stripped':
      return active.stripThinking();
    case 'marks':
      return active.become({ marks: MARKS[amount % MARKS.length] as (typeof MARKS)[number] });
    case 'update':
      return active.become({ fields: UPDATES[amount % UPDATES.length] as Json });
    case 'mode':
      return active.become({ fields: { thinking: { type: 'disabled' } } });
    case 'side by side':
      return sideBySide(world, active);
  }
}

async function turn(world: World, rounds: number, route: Route = 'messages'): Promise<void> {
  const active = world.terminals[world.at] as Terminal;
  const plain = randomTurn(world.random, rounds);
  await active.ask(world.wide === null ? plain : widen(world.wide, plain), route);
  const from = world.checked.get(active) ?? 0;
  active.said.slice(from).forEach((said, index) => {
    checkRequest(world, active, said, from + index);
  });
  world.checked.set(active, active.said.length);
}

function checkRequest({ counts }: World, { said: all }: Terminal, said: Said, index: number): void {
  const { exchange, ownFault } = said;
  counts.requests += 1;
  if (ownFault) {
    counts.ownFaults += 1;
    return;
  }
  expectAccepted(exchange);
  const fresh = said.entries.at(-1);
  if (fresh !== undefined && isPrompt(fresh)) counts.prompts += 1;
  const sides = compare(exchange);
  const gaps = getGaps(sides);
  if (gaps.some(([, to]) => to > sides.received - 2)) throw new Error('the newest round was cut');
  // Whole turns are cut from the front only; behind it tool rounds are cut, and the prompt they answer stays.
  for (const [at, [from, to]] of gaps.entries()) {
    const gone = sides.prompts.filter((index) => index >= from && index < to);
    const allowed = at === 0 && from <= sides.head ? sides.prompts.slice(0, -1) : [];
    if (gone.length > 0 && !sides.prompts.includes(to)) throw new Error(`the cut ends inside a turn: ${to}`);
    if (gone.some((index) => !allowed.includes(index))) throw new Error(`a prompt was cut: ${gone.join()}`);
  }
  expectStanding(exchange);
  const before = all[index - 1];
  // A late request is stripped without a plan, so its history may differ.
  if (before !== undefined && said.route !== 'late') expectStable(before, said);
}

/** What the client says once is still said, and its newest directive applies. */
function expectStanding({ request, sent }: Exchange): void {
  if (request.bytes.equals(sent)) return;
  const [had, goes] = [readStanding(request.bytes), readStanding(sent)];
  for (const part of had.parts) if (!goes.parts.includes(part)) throw new Error(`no longer said: ${part}`);
  if (had.directive !== goes.directive) throw new Error(`another directive: ${goes.directive}`);
}

const PARTS = [INSTRUCTIONS, 'ToolSearch:\nWebFetch', 'ToolSearch:\nmcp__docs__search', 'Primary working directory: '];

function readStanding(body: Buffer): { readonly parts: readonly string[]; readonly directive: string } {
  const { messages } = JSON.parse(body.toString()) as { messages: readonly Json[] };
  const texts = messages.flatMap(({ content }) =>
    typeof content === 'string' ? [content] : (content as readonly Json[]).map(({ text }) => String(text)),
  );
  const directive = messages.findLast(({ output_config: config }) => config !== undefined)?.['output_config'];
  return {
    parts: PARTS.filter((part) => texts.some((text) => text.includes(part))),
    directive: JSON.stringify(directive ?? null),
  };
}

/** Within an epoch nothing that went out before changes. */
function expectStable(before: Said, now: Said): void {
  const continues = before.entries.every((entry, index) => now.entries[index] === entry) && before.model === now.model;
  if (!continues || before.epochs !== now.epochs || before.exchange.rewritten !== now.exchange.rewritten) return;
  const [was, is] = [compare(before.exchange).sent, compare(now.exchange).sent];
  const moved = was.findIndex((message, index) => !isBoundAlike(message, is[index] ?? '{}'));
  if (moved >= 0) throw new Error(`message ${moved} changed within an epoch`);
  const [had, has] = [before.exchange.request.bytes, now.exchange.request.bytes].map(getSystem);
  if (had === has && getSystem(before.exchange.sent) !== getSystem(now.exchange.sent))
    throw new Error('system changed within an epoch');
}

async function expectSame(
  world: World,
  terminal: Terminal,
  route: 'messages' | 'count_tokens' | 'overloaded',
): Promise<void> {
  const newest = terminal.said.at(-1);
  // A late request may be rewritten when it is sent again.
  if (newest?.route !== 'messages' || !newest.exchange.rewritten) return;
  if (terminal.wasRefused || citesUnsent(newest.exchange)) return;
  const again = await terminal.again(route);
  world.counts.replays += 1;
  if (!again.sent.equals(newest.exchange.sent)) throw new Error(`another rewrite of the same request (${route})`);
}

/** The scripted answer cites a document that was not sent, which no model can: it breaks the plan of what follows. */
function citesUnsent({ content, sent }: Exchange): boolean {
  const cited = [...JSON.stringify(content).matchAll(/"document_index":(\d+)/g)].map(([, index]) => Number(index));
  const documents = sent.toString().split('"type":"document"').length - 1;
  return cited.some((index) => index >= documents);
}

async function subagent({ rig, random, betas }: World, parent: Terminal): Promise<void> {
  const { model, version, sessionId: id, entries } = parent.shape;
  const headers = {
    ...betas,
    'x-claude-code-agent-id': 'a1',
    ...(isNew(parent.shape) && { 'x-claude-code-request-class': 'subagent' }),
  };
  const agent = createTerminal(rig, { model, version, sessionId: id, headers });
  const text = String(entries[0]?.blocks.at(-1)?.['text']);
  const turns = [{ prompt: text, answer: `Agent ${random(1_000_000)} reports.` }, randomTurn(random, 2)];
  for (const one of turns) {
    for (const exchange of await agent.ask(one)) {
      expectTaken(exchange);
      if (exchange.rewritten) throw new Error('a subagent was rewritten');
    }
  }
}

/** A fork with tools of its own, such as a subagent with the history of its parent. */
async function errand({ rig, random, betas }: World, parent: Terminal, amount: number): Promise<void> {
  const headers: Record<string, string> =
    amount % 2 === 0
      ? { 'x-claude-code-agent-id': 'a2', 'x-claude-code-request-class': 'subagent' }
      : { 'x-claude-code-request-class': 'auxiliary' };
  const fork = createTerminal(rig, { ...parent.shape, headers: { ...betas, ...headers }, isStale: parent.isStale });
  const exchanges = await fork.ask({ ...randomTurn(random, 1 + (amount % 3)), prompt: 'Note what was said.' });
  for (const exchange of exchanges) expectTaken(exchange);
  const newest = parent.said.at(-1);
  const continues =
    newest?.model === parent.shape.model && newest.entries.every((e, at) => parent.shape.entries[at] === e);
  // Without its parent's plan, each of its requests is stripped.
  if (newest?.route !== 'messages' || !newest.exchange.rewritten || !continues || citesUnsent(newest.exchange)) return;
  const [first, ...others] = exchanges.map(({ sent }) => countSigned(sent));
  if (others.some((signed) => signed < (first ?? 0))) throw new Error('a fork lost thinking');
}

const countSigned = (sent: Buffer): number => sent.toString().split('"signature"').length;

function expectAccepted({ refusal, request: { bytes, headers } }: Exchange): void {
  if (refusal === null) return;
  const own = findRefusal(JSON.parse(bytes.toString()), (headers['anthropic-beta'] ?? '').split(','), bytes.length);
  // A loop that the client continues after an answer without thinking, or after stripping it.
  if (own?.message.includes('Expected `thinking`')) return;
  throw new Error(`${own === null ? 'refused' : `the client's: ${own.message}`}: ${refusal.message}`);
}

/** A refusal of an unchanged request is the client's own fault. */
function expectTaken(exchange: Exchange): void {
  if (exchange.refusal !== null && exchange.rewritten) expectAccepted(exchange);
}

function sessionId(number: number): string {
  return `${String(number).padStart(8, '0')}-0000-4000-8000-000000000000`;
}
