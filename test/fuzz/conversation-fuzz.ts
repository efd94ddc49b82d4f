import fc from 'fast-check';
import type { RetrievalMode } from '../../proxy/rewrite/injected-text.ts';
import { createFakeMemory } from '../helpers/fake-memory.ts';
import { compare, gapsOf, isBoundAlike, systemOf } from './checks.ts';
import { createTerminal, isPrompt, type Said, type Terminal } from './fake-client.ts';
import { createWireRig, type Exchange, earlyCuts, type Route, type WireRig } from './rig.ts';
import { type Random, randomFrom, randomTurn } from './turns.ts';

/** What a user or the machine may do next; often is named more often. */
const DEEDS = [
  ...Array<'turn'>(12).fill('turn'),
  ...Array<'loop'>(1).fill('loop'),
  ...Array<'restart'>(2).fill('restart'),
  ...Array<'wait'>(2).fill('wait'),
  'retry',
  'count',
  'fork',
  'rewind',
  'compact',
  'clear',
  'other terminal',
  'same session',
  'model',
  'effort',
  'past us',
  'late',
  'aside',
  'subagent',
  'results cleared',
  'thinking stripped',
] as const;

export interface Adventure {
  readonly seed: number;
  readonly model: string;
  readonly ttl: '5m' | '1h';
  readonly retrieval: RetrievalMode;
  readonly margin: number;
  readonly deeds: readonly (readonly [(typeof DEEDS)[number], number])[];
}

export interface Tally {
  requests: number;
  prompts: number;
  cuts: number;
  roundCuts: number;
  injections: number;
  replays: number;
  ownFaults: number;
}

export const noTally = (): Tally => ({
  requests: 0,
  prompts: 0,
  cuts: 0,
  roundCuts: 0,
  injections: 0,
  replays: 0,
  ownFaults: 0,
});

export function adventures(models: readonly string[]): fc.Arbitrary<Adventure> {
  const deed = fc.tuple(fc.constantFrom(...DEEDS), fc.nat(60));
  return fc.record({
    seed: fc.nat(),
    model: fc.constantFrom(...models),
    ttl: fc.constantFrom<'5m' | '1h'>('5m', '1h'),
    retrieval: fc.constantFrom<RetrievalMode>('auto', 'auto', 'user-block', 'system-message', 'system-field', 'off'),
    margin: fc.constantFrom(0, 0, 1),
    deeds: fc.oneof(
      { weight: 9, arbitrary: fc.array(deed, { minLength: 1, maxLength: 9 }) },
      { weight: 1, arbitrary: fc.array(deed, { minLength: 10, maxLength: 24 }) },
    ),
  });
}

/** Lives through it. @throws at the first request that breaks a promise */
export async function live(adventure: Adventure, enforceThinking: boolean, tally: Tally): Promise<void> {
  const { retrieval, margin, model, ttl } = adventure;
  const cut = earlyCuts({ margin, roundMargin: margin });
  const memory = createFakeMemory({ durable: (turnId) => !turnId.startsWith('0') });
  // Where a session has to make room for every other one, each comes back from disk.
  const heldSessions = adventure.seed % 2 === 0 ? { heldSessions: 1 } : {};
  const rig = await createWireRig({ config: { retrieval, cut }, enforceThinking, memory, ...heldSessions });
  const first = createTerminal(rig, { model, ttl, sessionId: sessionId(0) });
  const world: World = { rig, terminals: [first], at: 0, random: randomFrom(adventure.seed), seen: new Map(), tally };
  await turn(world, 1);
  for (const [deed, amount] of adventure.deeds) await perform(world, deed, amount);
  for (const record of rig.records) {
    if (record.kind === 'plan' && record.plan.cut !== null) tally.cuts += 1;
    if (record.kind === 'plan' && record.plan.rounds.length > 0) tally.roundCuts += 1;
    if (record.kind === 'injections') tally.injections += 1;
  }
}

interface World {
  readonly rig: WireRig;
  readonly terminals: Terminal[];
  at: number;
  readonly random: Random;
  /** For each terminal, how many of its requests were looked at. */
  readonly seen: Map<Terminal, number>;
  readonly tally: Tally;
}

const MODELS = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-4-8', 'claude-sonnet-4-6', 'claude-haiku-4-5'];
const WAITS_MS = [30_000, 400_000, 7_200_000, 3 * 86_400_000];
const ASIDES = ['[SUGGESTION MODE: say what comes next]', 'What was that port again?'];

async function perform(world: World, deed: (typeof DEEDS)[number], amount: number): Promise<void> {
  const { rig, terminals } = world;
  const active = terminals[world.at] as Terminal;
  switch (deed) {
    case 'turn':
      return turn(world, amount % 3);
    case 'loop':
      return turn(world, 8 + (amount % 20));
    case 'late':
    case 'past us':
      return turn(world, amount % 3, deed === 'late' ? 'late' : 'past');
    case 'retry':
      return expectSame(world, active, 'messages');
    case 'count':
      return expectSame(world, active, 'count_tokens');
    case 'restart':
      await rig.restart();
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
    case 'results cleared':
      return active.clearResults();
    case 'thinking stripped':
      return active.stripThinking();
  }
}

async function turn(world: World, rounds: number, route: Route = 'messages'): Promise<void> {
  const active = world.terminals[world.at] as Terminal;
  await active.ask(randomTurn(world.random, rounds), route);
  const from = world.seen.get(active) ?? 0;
  active.said.slice(from).forEach((said, index) => {
    look(world, active, said, from + index);
  });
  world.seen.set(active, active.said.length);
}

function look({ tally }: World, { said: all }: Terminal, said: Said, index: number): void {
  const { exchange, ownFault } = said;
  tally.requests += 1;
  if (ownFault) {
    tally.ownFaults += 1;
    return;
  }
  if (exchange.refusal !== null) throw new Error(`refused: ${exchange.refusal.message}`);
  const fresh = said.entries.at(-1);
  if (fresh !== undefined && isPrompt(fresh)) tally.prompts += 1;
  const sides = compare(exchange);
  const gaps = gapsOf(sides);
  if (gaps.some(([, to]) => to > sides.received - 2)) throw new Error('the newest round is gone');
  // Whole turns go from the front; further on only rounds do, and the prompt they answer stays.
  for (const [at, [from, to]] of gaps.entries()) {
    const gone = sides.prompts.filter((index) => index >= from && index < to);
    const allowed = at === 0 && from <= sides.head ? sides.prompts.slice(0, -1) : [];
    if (gone.length > 0 && !sides.prompts.includes(to)) throw new Error(`the cut ends inside a turn: ${to}`);
    if (gone.some((index) => !allowed.includes(index))) throw new Error(`a prompt is gone: ${gone.join()}`);
  }
  const before = all[index - 1];
  // What goes out late is stripped on its own account where the history went its own way.
  const ownWay = said.route === 'late';
  if (before !== undefined && !ownWay) expectStable(before, said);
}

/** Within an epoch nothing that went out before changes. */
function expectStable(before: Said, now: Said): void {
  const goesOn = before.entries.every((entry, index) => now.entries[index] === entry) && before.model === now.model;
  if (!goesOn || before.epochs !== now.epochs || before.exchange.rewritten !== now.exchange.rewritten) return;
  const [was, is] = [compare(before.exchange).sent, compare(now.exchange).sent];
  const moved = was.findIndex((message, index) => !isBoundAlike(message, is[index] ?? '{}'));
  if (moved >= 0) throw new Error(`message ${moved} changed within an epoch`);
  if (systemOf(before.exchange.sent) !== systemOf(now.exchange.sent)) throw new Error('system changed within an epoch');
}

async function expectSame(world: World, terminal: Terminal, route: 'messages' | 'count_tokens'): Promise<void> {
  const newest = terminal.said.at(-1);
  // What was late has its chance when it is asked again.
  if (newest?.route !== 'messages' || !newest.exchange.rewritten) return;
  const again = await terminal.again(route);
  world.tally.replays += 1;
  if (!again.sent.equals(newest.exchange.sent)) throw new Error(`another rewrite of the same request (${route})`);
}

async function subagent({ rig, random }: World, parent: Terminal): Promise<void> {
  const { model, sessionId: id, entries } = parent.shape;
  const agent = createTerminal(rig, { model, sessionId: id, headers: { 'x-claude-code-agent-id': 'a1' } });
  const text = String(entries[0]?.blocks.at(-1)?.['text']);
  const turns = [{ prompt: text, answer: `Agent ${random(1_000_000)} reports.` }, randomTurn(random, 2)];
  for (const one of turns) {
    for (const exchange of await agent.ask(one)) {
      expectTaken(exchange);
      if (exchange.rewritten) throw new Error('a subagent was rewritten');
    }
  }
}

/** Refused as it came is the client's own doing. */
function expectTaken({ refusal, rewritten }: Exchange): void {
  if (refusal !== null && rewritten) throw new Error(`refused: ${refusal.message}`);
}

function sessionId(number: number): string {
  return `${String(number).padStart(8, '0')}-0000-4000-8000-000000000000`;
}
