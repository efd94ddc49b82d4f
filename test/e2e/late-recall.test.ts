import { setTimeout as after } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHomeWithCerts, LOOK_MS, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { type ConversationPlan, growConversation, seededPlan, type Upstream } from '../helpers/transcripts.ts';
import { type AnswerBlock, createStandin, type Standin } from '../mock-anthropic/index.ts';

let standin: Standin;
let home: TestHome;
let planned: readonly AnswerBlock[] = [];

beforeAll(async () => {
  standin = await createStandin({ brain: () => ({ kind: 'message', blocks: planned }) });
  // No search is that fast.
  home = await createHomeWithCerts({ COMET_CC_UPSTREAM: standin.origin, COMET_CC_RECALL_DEADLINE_MS: '0' });
  await home.json(['start', '--json']);
});

afterAll(async () => {
  await home.close();
  await standin.close();
});

interface Recalls {
  readonly recalls: Readonly<Record<string, number>>;
}

async function recallsUntil(test: (recalls: Recalls['recalls']) => boolean): Promise<Recalls['recalls']> {
  for (;;) {
    const { recalls } = (await home.json(['status', '--json'])) as Recalls;
    if (test(recalls)) return recalls;
    await after(LOOK_MS);
  }
}

const BASE = seededPlan(1, { turns: 1, models: ['claude-opus-4-8'], rounds: 0 });
const [TURN] = BASE.turns as [ConversationPlan['turns'][number]];
const ROUND = { thinking: ['Hm.'], text: null, tools: [], order: [0], note: null };
const LIST = { name: 'Bash', input: { command: 'ls' }, result: 'src', isError: false };

it('a recall that misses its deadline goes out with the tool results of its prompt', async () => {
  const through = await daemonUpstream(home);
  const upstream: Upstream = async (request) => {
    planned = request.answer;
    if (request.turn === 0 && request.round === 1) await recallsUntil(({ late_waiting }) => late_waiting === 1);
    return through(request);
  };
  const say = (sessionId: string, prompts: readonly string[], rounds: ConversationPlan['turns'][number]['rounds']) =>
    growConversation(
      {
        ...{ ...BASE, sessionId, cwd: '/home/dev/shop' },
        turns: prompts.map((prompt) => ({ ...TURN, prompt, rounds, image: false, note: null })),
      },
      upstream,
    );
  await say(crypto.randomUUID(), ['We decided that the staging database listens on port 5433.', 'Logs rotate.'], []);
  expect((await home.run(['flush'])).code).toBe(0);
  const round = { ...ROUND, tools: [LIST] };
  const steps = await say(
    crypto.randomUUID(),
    ['Which port does the staging database listen on?', 'Thank you.'],
    [round, round],
  );
  expect(steps.map(({ reply }) => reply.refusal)).toEqual(steps.map(() => null));
  const bodies = standin.requests.slice(-steps.length).map(({ bytes }) => bytes.toString('utf8'));
  const told = bodies.map((body) => body.split('5433').length - 1);
  expect(told[0]).toBe(0);
  expect(told[1]).toBeGreaterThan(0);
  // Appended once, and the same from then on.
  expect(new Set(told.slice(1)).size).toBe(1);
  expect(await recallsUntil(() => true)).toMatchObject({ late_delivered: 1, failed: 0 });
}, 60_000);
