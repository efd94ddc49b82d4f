import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude } from '../helpers/claude.ts';
import { stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';
import type { Answer, ServedRequest } from '../mock-anthropic/index.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-5-5', ...TOOLS];
const prompt = (step: number): string => `Step ${step}: count the settings of module ${step}.`;

/** `messages` as they stand in the body. */
function getMessages({ bytes }: ServedRequest): string {
  const text = bytes.toString();
  return text.slice(text.indexOf('"messages":['), text.indexOf('],"system":['));
}

/** Blocks as the API reads them: the client changes their form as they grow older. */
function canonical(body: ServedRequest['body'], part: 'system' | 'messages'): string[] {
  const entries = (body?.[part] ?? []) as { content?: unknown }[];
  return entries.map((entry) => {
    const content = typeof entry.content === 'string' ? [{ type: 'text', text: entry.content }] : entry.content;
    const whole = content === undefined ? entry : { ...entry, content };
    return JSON.stringify(whole, (key, value: unknown) => (key === 'cache_control' ? undefined : value));
  });
}

/** The client's own ids and its digest of the request differ in each. */
const withoutIds = ({ bytes }: ServedRequest): string =>
  bytes.toString().replace(/\b(?:cch|cc_prompt_id)=[\w-]+;/g, '');

/** Stops the next answer of the conversation behind its first piece. */
interface Hold {
  reached(): void;
  readonly released: Promise<void>;
}

/** The conversation went on where it was: nothing before the new part differs from what upstream saw last. */
function expectSamePrefix(before: ServedRequest, after: ServedRequest): void {
  // The first block holds a digest of the request; the API leaves it out.
  expect(canonical(after.body, 'system').slice(1)).toEqual(canonical(before.body, 'system').slice(1));
  const old = canonical(before.body, 'messages');
  expect(canonical(after.body, 'messages').slice(0, old.length)).toEqual(old);
}

const isTrimmed = (request: ServedRequest): boolean => request.bytes.includes('Earlier turns of this conversation');

describe.skipIf(claude === null)(`a trimmed conversation${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;
  let client: ClaudeProcess;
  let sessionId = '';
  let step = 0;
  let hold: Hold | null = null;

  const deliver = (answer: Answer, request: ServedRequest): Answer => {
    if (hold === null || request.class !== 'main' || answer.kind !== 'message') return answer;
    const { reached, released } = hold;
    hold = null;
    const pause = {
      afterDeltas: 1,
      get until() {
        reached();
        return released;
      },
    };
    return { ...answer, delivery: { pause } };
  };
  const next = async (): Promise<void> => {
    step += 1;
    await rig.settled();
    const answer = await client.ask(prompt(step));
    expect(answer).toMatchObject({ isError: false, text: expect.stringContaining(`Step ${step} is done`) });
    sessionId = answer.sessionId;
  };
  const newest = (): ServedRequest => mainRequests(rig.standin, sessionId).at(-1) as ServedRequest;
  const resume = (): ClaudeProcess => rig.remembered([...OPUS, '--resume', sessionId]);

  beforeAll(async () => {
    // Only the first three steps are long: once they are cut, nothing is worth another cut.
    const files = stepFiles(40, (number) => (number <= 3 ? 300 : 4));
    const env = {
      COMET_CC_LLM: 'local',
      COMET_CC_TRIM_TRIGGER_TOKENS: '9000',
      COMET_CC_TRIM_MIN_DROP_SHARE: '0.75',
    };
    rig = await createClientRig({ claude: claude as string, deliver, files, env });
    client = rig.remembered(OPUS);
    while (step < 12 && !(step > 0 && isTrimmed(newest()))) await next();
    expect(isTrimmed(newest())).toBe(true);
  });

  afterAll(async () => {
    await rig?.close();
  });

  const refused = (): number => rig.standin.refused.length;
  const sent = (): ServedRequest[] => mainRequests(rig.standin, sessionId);
  /** Uses of plans on disk: one for each request, and `otherUses` from before. */
  const countUses = (): number => {
    const file = path.join(rig.home.home, 'plans', `${sessionId}.jsonl`);
    return readFileSync(file, 'utf8').split('"use":').length - 1;
  };

  let otherUses = 0;

  /** Kills the engine; resolves when the guard has another one. */
  const killEngine = async (): Promise<void> => {
    const { engine } = await rig.status();
    process.kill(engine.pid, 'SIGKILL');
    const isBack = async (): Promise<boolean> => {
      const now = (await rig.status()).engine;
      return now.state === 'healthy' && now.pid !== engine.pid;
    };
    while (!(await isBack()));
  };

  it('sends byte for byte after a restart of the daemon what it would have sent without it', async () => {
    await client.end();
    const [before, first, refusals] = [newest(), sent().length, refused()];
    const goBack = rig.keepClient();
    client = resume();
    await next();
    await client.end();

    goBack();
    step -= 1;
    const second = sent().length;
    const { pid } = await rig.status();
    expect(await rig.home.run(['restart'])).toMatchObject({ code: 0 });
    expect((await rig.status()).pid).not.toBe(pid);
    client = resume();
    await next();
    await client.end();
    const [without, after] = [sent()[first], sent()[second]] as [ServedRequest, ServedRequest];
    expect(withoutIds(after)).toBe(withoutIds(without));
    expectSamePrefix(before, after);
    expect(refused()).toBe(refusals);
    client = resume();
  });

  it('continues through a restart while the client runs', async () => {
    const [before, first, refusals] = [newest(), sent().length, refused()];
    expect(await rig.home.run(['restart'])).toMatchObject({ code: 0 });
    // The engine that ended has written all.
    otherUses = countUses() - first;
    await next();
    expectSamePrefix(before, sent()[first] as ServedRequest);
    expect(refused()).toBe(refusals);
  });

  it('continues when the engine is killed between two turns', async () => {
    const [before, first, refusals] = [newest(), sent().length, refused()];
    // A plan's use is written without delaying the request; an engine that dies before leaves thinking out.
    await expect.poll(countUses).toBe(otherUses + first);
    await killEngine();
    await next();
    expectSamePrefix(before, sent()[first] as ServedRequest);
    expect(refused()).toBe(refusals);
  });

  it('continues when the engine is killed in the middle of an answer', async () => {
    const [first, refusals] = [sent().length, refused()];
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const begun = new Promise<void>((reached) => {
      hold = { reached, released };
    });
    const going = next();
    await Promise.race([begun, going]);
    // Two seconds after a kill the guard would pass requests by the engine, and a busy machine may need longer.
    const unfreeze = client.freeze();
    await killEngine().finally(unfreeze);
    await going;
    release();
    const [cut, again] = sent().slice(first) as [ServedRequest, ServedRequest];
    expect(cut.end).toBe('aborted');
    // The client may ask again without a stream, which changes its digest of the request in the first system block.
    expect(getMessages(again)).toBe(getMessages(cut));
    expectSamePrefix(cut, again);
    expect(refused()).toBe(refusals);
  });

  it('continues through the plain tunnel after a stop, and with memory again after a start', async () => {
    expect(await rig.home.run(['stop'])).toMatchObject({ code: 0, stdout: expect.stringContaining('1 session') });
    const first = sent().length;
    step += 1;
    const answer = await client.ask(prompt(step));
    expect(answer).toMatchObject({ isError: false, text: expect.stringContaining(`Step ${step} is done`) });
    expect(isTrimmed(sent()[first] as ServedRequest)).toBe(false);
    expect(await rig.home.run(['start'])).toMatchObject({ code: 0 });
    // A connection that was opened in between stays a plain tunnel.
    await client.end();
    client = resume();
    await next();
    expect((await rig.status()).requests.total).toBeGreaterThan(0);
  });

  it('has lost nothing of all that, and nothing went wrong unseen', async () => {
    await client.end();
    expect(await rig.home.run(['flush'])).toMatchObject({ code: 0 });
    expect(rig.strangers).toEqual([]);
    const raw = JSON.stringify(await rig.home.json(['memory', 'restore', sessionId, '--json']));
    for (let turn = 1; turn <= step; turn += 1) expect(raw).toContain(`setting${turn}x3`);
    expect(rig.logged('error')).toEqual([]);
  });
});
