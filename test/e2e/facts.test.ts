import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FactView } from '../../memory/index.ts';
import { createLiveRig, type LiveRig, openTerminal, type Terminal } from '../helpers/live-rig.ts';
import { openMcp } from '../helpers/mcp-client.ts';

const SHOP = '/home/ada/shop';

let rig: LiveRig;

beforeAll(async () => {
  rig = await createLiveRig({ COMET_CC_LLM: 'off' });
});

afterAll(() => rig.close());

const facts = async (...args: string[]): Promise<FactView[]> =>
  (await rig.home.json(['facts', ...args, '--json'])) as FactView[];
const list = async (...args: string[]): Promise<string[]> =>
  (await facts('ls', '--project', SHOP, ...args)).map(({ concept, value }) => `${concept}: ${value}`);
/** A fact is known once the answer is there. */
async function tell(terminal: Terminal, ...prompts: string[]): Promise<void> {
  for (const prompt of prompts) await terminal.say(prompt);
}
/** Without the client's first block, which differs in each request. */
const lastSystem = (): string =>
  JSON.stringify((rig.standin.requests.at(-1)?.body?.['system'] as unknown[] | undefined)?.slice(1));
const lastBody = (): string => String(rig.standin.requests.at(-1)?.bytes);
const factsDir = (): string => path.join(rig.home.home, 'memory/facts');

describe('facts', () => {
  it('are kept of what the user says, and stand in the next session until they are negated', async () => {
    const first = openTerminal(rig, { cwd: SHOP });
    await tell(first, 'We use Redis for the cache.', 'I prefer small commits.');
    await expect
      .poll(() => list())
      .toEqual(['Person.Preference: small commits', 'Project.Decision: Redis for the cache']);
    const second = openTerminal(rig, { cwd: SHOP });
    await second.say('Good morning.');
    const before = lastSystem();
    expect(before).toContain('## Facts');
    expect(before).toContain('- Project.Decision: \\"Redis for the cache\\"');
    await tell(second, 'We no longer use redis.');
    await expect.poll(() => list()).toEqual(['Person.Preference: small commits']);
    await tell(second, 'And now?', 'And then?');
    expect(lastSystem()).toBe(before);
    expect(lastBody().split('- no longer Project.Decision: \\"Redis for the cache\\"')).toHaveLength(2);
    await openTerminal(rig, { cwd: SHOP }).say('Good evening.');
    expect(lastSystem()).toContain('small commits');
    expect(lastSystem()).not.toContain('Redis for the cache');
    expect(rig.standin.refused).toEqual([]);
  });

  it('of the user hold in every project, those of a project only there', async () => {
    await tell(openTerminal(rig, { cwd: SHOP }), 'Staging port is 4711.', 'Go on.');
    await expect.poll(() => list('--concept', 'Project.Environment')).toHaveLength(1);
    await openTerminal(rig, { cwd: '/home/ada/other' }).say('Hello.');
    expect(lastSystem()).toContain('small commits');
    expect(lastSystem()).not.toMatch(/\b4711\b/);
  });

  it('are files that a person may edit; lines that are no facts are named and kept', async () => {
    const file = path.join(factsDir(), 'user.md');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(factsDir())).toHaveLength(2);
    const text = await readFile(file, 'utf8');
    await writeFile(file, `${text}\n- Person.Language: Polish\n- Person.Shoe: 43\nA note of mine.\n`);
    expect(await list('--concept', 'Person')).toEqual(['Person.Language: Polish', 'Person.Preference: small commits']);
    const { stdout } = await rig.home.run(['doctor']);
    expect(stdout).toContain('the ontology declares no Person.Shoe');
    await tell(openTerminal(rig, { cwd: SHOP }), 'I prefer tabs.', 'Go on.');
    await expect.poll(() => list('--concept', 'Person.Preference')).toHaveLength(2);
    const after = await readFile(file, 'utf8');
    expect(after).toContain('- Person.Shoe: 43\nA note of mine.');
    expect(after).toContain('- Person.Language: Polish [said:: Polish] [by:: user]');
  });

  it('are told to Claude and erased by it, within the project', async () => {
    const mcp = await openMcp(rig.home, { cwd: rig.home.user, root: SHOP });
    try {
      const told = await mcp.call('what_do_you_know', { concept: 'Person.Preference' });
      const [, id = ''] =
        /\[(fact_\w+)\] Person\.Preference: tabs \(since .*, said: "I prefer tabs\."\)/.exec(told) ?? [];
      expect(told).not.toMatch(/\b4711\b/);
      expect(await mcp.call('what_do_you_know', {})).toMatch(/\b4711\b/);
      expect(await mcp.call('forget_fact', { id })).toContain(`Erased ${id}`);
      expect(await mcp.call('forget_fact', { id })).toContain('ERROR');
    } finally {
      await mcp.close();
    }
    expect(await list('--concept', 'Person.Preference')).toEqual(['Person.Preference: small commits']);
  });

  it('are explained and erased', async () => {
    const [fact] = await facts('ls', '--project', SHOP, '--concept', 'Project.Environment');
    const { stdout } = await rig.home.run(['facts', 'why', (fact as FactView).id.slice(-6)]);
    expect(stdout).toContain('said: “Staging port is 4711.”');
    expect(stdout).toContain('by: you');
    expect((await rig.home.run(['facts', 'about', 'me', '--project', SHOP])).stdout).toContain(
      'Person.Preference: How',
    );
    expect(await facts('forget', 'Project.Environment', '--project', SHOP, '--yes')).toHaveLength(1);
    expect(await list('--concept', 'Project.Environment')).toEqual([]);
    expect((await rig.filesWith('port is 4711')).filter((file) => file.startsWith(factsDir()))).toEqual([]);
    expect(await rig.home.run(['facts', 'forget', 'ffffff', '--yes'])).toMatchObject({ code: 4 });
    for (const args of [
      ['--class', 'eternal'],
      ['--class', 'eternal', '--project', '/home/me/without-facts', '--json'],
    ]) {
      const { code, stdout, stderr } = await rig.home.run(['facts', 'ls', ...args]);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain('--class expects permanent, long_term, session, ephemeral (got "eternal")');
    }
  });
});
