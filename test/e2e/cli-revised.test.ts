import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { daemonUpstream } from '../helpers/live-conversation.ts';
import { growConversation, seededPlan } from '../helpers/transcripts.ts';
import { createStandin, type Standin } from '../mock-anthropic/index.ts';

let standin: Standin;
let home: TestHome;

beforeAll(async () => {
  standin = await createStandin();
  home = await createHomeWithCerts({ COMET_CC_UPSTREAM: standin.origin });
  await home.json(['start', '--json']);
});

afterAll(async () => {
  await home.close();
  await standin.close();
});

/** What was sent upstream for the last prompt of a session of its own. */
async function sent(seed: number, prompts: readonly string[]): Promise<string> {
  const plan = seededPlan(seed, { turns: 1, models: ['claude-opus-4-8'], rounds: 0 });
  const [turn] = plan.turns as [(typeof plan.turns)[number]];
  const turns = prompts.map((prompt) => ({ ...turn, prompt, image: false, note: null }));
  const cwd = '/home/dev/shop';
  const steps = await growConversation({ ...plan, cwd, turns }, await daemonUpstream(home));
  expect(steps.every(({ reply }) => reply.refusal === null)).toBe(true);
  const bytes = standin.requests.at(-1)?.bytes.toString('utf8') as string;
  expect((await home.run(['flush'])).code).toBe(0);
  return bytes;
}

it('what was replaced is never injected as if it were so, and told to who asks what was', async () => {
  await sent(1, [
    'We decided that the staging database listens on port 5433.',
    'Invoices are rounded to cents.',
    'Go on.',
  ]);
  await sent(2, [
    'From now on the staging database listens on port 6432 instead.',
    'Logs rotate each night.',
    'Go on.',
  ]);
  const now = await sent(3, ['Which port does the staging database listen on?']);
  expect(now).toContain('6432');
  expect(now).not.toMatch(/\b5433\b/);
  const before = await sent(4, ['Which port did the staging database listen on before?']);
  expect(before).toMatch(/5433.*\[in part replaced by mem_/);
});
