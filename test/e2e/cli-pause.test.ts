import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveRig, type LiveRig, longTalk, openTerminal } from '../helpers/live-rig.ts';

let rig: LiveRig;

beforeAll(async () => {
  rig = await createLiveRig({ COMET_CC_LLM: 'local' });
});

afterAll(() => rig.close());

const getTurns = async (sessionId: string): Promise<number | undefined> => {
  const sessions = (await rig.home.json(['session', 'ls', '--json'])) as { session_id: string; turns: number }[];
  return sessions.find((session) => session.session_id === sessionId)?.turns;
};

describe('a pause in a running session', () => {
  it('captures nothing, not even later, while the current plan is kept', async () => {
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'the ledger' });
    await rig.flush();
    const before = await getTurns(terminal.sessionId);
    const { requests } = await rig.status();
    expect(requests.rewritten).toBeGreaterThan(0);

    const said = await rig.home.run(['pause', '--for', '2h']);
    expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(/memory is paused everywhere, until \d/) });
    await terminal.say('My sister Annegret must never be written down.');
    expect((await rig.status()).requests.rewritten).toBe(requests.rewritten + 1);
    expect((await rig.home.run(['status'])).stdout).toContain('memory is paused everywhere');

    expect((await rig.home.run(['resume'])).code).toBe(0);
    await terminal.say('The ledger keeps its journal for ninety days.');
    await rig.flush();
    expect(await rig.filesWith('Annegret')).toEqual([]);
    expect(await getTurns(terminal.sessionId)).toBe((before as number) + 1);
    expect(await rig.filesWith('ninety days')).not.toEqual([]);
    // What went out is the whole conversation all the same.
    expect(rig.standin.requests.at(-1)?.bytes.toString('utf8')).toContain('Annegret');
  });

  it.each([
    ['another form', 'We decided that the tide table listens on port 4711.'],
    ['a summary', 'This session is being continued from a previous conversation. His brother is Ottokar.'],
  ])('captures nothing later where the history comes back in %s', async (_, first) => {
    const terminal = openTerminal(rig);
    await longTalk(rig, terminal, { topic: 'the tide table' });
    expect((await rig.home.run(['pause'])).code).toBe(0);
    await terminal.say('My brother Ottokar must never be written down.');
    expect((await rig.home.run(['resume'])).code).toBe(0);
    await rig.flush();
    const changed = terminal.twin(first);
    await changed.say('The tide table keeps its journal for eighty days.');
    await changed.say('It is printed on Mondays.');
    await rig.flush();
    expect(await rig.filesWith('Ottokar')).toEqual([]);
    expect(await rig.filesWith('eighty days')).not.toEqual([]);
  });

  it('knows turns behind a pause again where the history comes back in another form, also those without typed words', async () => {
    const terminal = openTerminal(rig);
    await terminal.say('The harbor opens at six.');
    // A turn is withheld if the pause comes before the engine has seen the end of its answer.
    await rig.flush();
    expect((await rig.home.run(['pause'])).code).toBe(0);
    await terminal.say('My brother Ottokar must never be written down.');
    expect((await rig.home.run(['resume'])).code).toBe(0);
    const notice = '[SYSTEM NOTIFICATION - NOT USER INPUT]\nThe dredger ended with exit code 0.';
    await terminal.say(`<system-reminder>\n${notice}\n</system-reminder>`);
    await terminal.say('The harbor closes at nine.');
    await rig.flush();
    expect(await getTurns(terminal.sessionId)).toBe(3);
    await terminal.twin('The harbor opens at seven.').say('And on Sundays?');
    await rig.flush();
    // The first prompt is another one now; the notice and what follows it are known.
    expect(await getTurns(terminal.sessionId)).toBe(5);
    expect(await rig.filesWith('Ottokar')).toEqual([]);
  });

  it('of one project leaves the others alone', async () => {
    const [one, other] = [openTerminal(rig, { cwd: rig.home.home }), openTerminal(rig)];
    expect((await rig.home.run(['pause', '--private', '--project', rig.home.home])).code).toBe(0);
    await one.say('The first project is called Hollandaise.');
    await other.say('The other project is called Bearnaise.');
    await rig.flush();
    expect(await rig.filesWith('Hollandaise')).toEqual([]);
    expect(await rig.filesWith('Bearnaise')).not.toEqual([]);
    expect(await rig.home.json(['resume', '--json'])).toMatchObject({ everywhere: null, projects: {} });
  });
});

it('status says at once that a .comet-cc.json with a mistake turns memory off', async () => {
  const cwd = path.join(rig.home.home, 'mistyped');
  const file = path.join(cwd, '.comet-cc.json');
  await mkdir(cwd);
  await writeFile(file, '{"memory": "of"}');
  const { stdout } = await rig.home.run(['status'], { cwd });
  expect(stdout).toMatch(/^memory +paused for /);
  expect(stdout).toContain(`problem: ${file}: cannot be read: memory is off where it applies until it is fixed`);
});

it('a project that says off in its .comet-cc.json is passed on and not taken in', async () => {
  const cwd = path.join(rig.home.home, 'quiet');
  await mkdir(cwd);
  await writeFile(path.join(cwd, '.comet-cc.json'), '{"memory": "off"}');
  const terminal = openTerminal(rig, { cwd });
  const before = (await rig.status()).requests;
  await longTalk(rig, terminal, { topic: 'Muscovado' });
  await rig.flush();
  const after = (await rig.status()).requests;
  expect(after.rewritten).toBe(before.rewritten);
  expect(after.passed_through).toBe(before.passed_through + 8);
  expect(await rig.filesWith('Muscovado')).toEqual([]);
  await rm(path.join(cwd, '.comet-cc.json'));
});
