import { execFileSync } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';
import { makeNode } from '../helpers/nodes.ts';

const SAID = [
  'The warehouse closes its books at noon.',
  'Returns go to the warehouse in Essen.',
  'Keep the warehouse out of the nightly export.',
  'The warehouse takes parcels up to 30 kg.',
];
const decided = (text: string, origin: 'user' | 'external', at: number) =>
  makeNode({
    node_id: `mem_20260301_11150${at}_00000${at}`,
    session_id: `5b0c7c52-6f5e-4c7e-9d55-00000000000${at % 4}`,
    summary: text,
    decisions: [{ text, by: 'user', origin, turn: '' }],
    turns: [],
  });

let home: TestHome;
const file = (): string => path.join(home.home, 'ontology.json');

beforeAll(async () => {
  home = await createHomeWithCerts();
  await home.json(['start', '--json']);
  const nodes = [
    ...SAID.map((text, at) => decided(text, 'user', at)),
    ...SAID.map((text, at) => decided(text.replace('warehouse', 'smuggler'), 'external', at + 4)),
  ];
  const lines = ['{"comet-cc-export":1}', ...nodes.map((node) => JSON.stringify({ node }))];
  await writeFile(path.join(home.user, 'in.jsonl'), lines.join('\n'));
  await home.json(['memory', 'import', 'in.jsonl', '--as', 'export', '--yes', '--json']);
});

afterAll(() => home.close());

it('proposes what several sessions speak of, nothing from outside, and writes nothing', async () => {
  const { stdout } = await home.run(['ontology', 'propose', '--all']);
  expect(stdout).toContain('Project.Warehouse: what holds about warehouse; 4 memories of 4 sessions');
  expect(stdout).not.toContain('smuggler');
  await expect(stat(file())).rejects.toThrow('ENOENT');
});

it('adds the concepts to your own file on demand, which is then covered', async () => {
  expect((await home.run(['ontology', 'propose', '--all', '--apply'])).stdout).toContain('holds them now');
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  expect(await home.json(['ontology', 'show', '--json'])).toMatchObject({
    concepts: { 'Person.Preference': {}, 'Project.Warehouse': { label: 'what holds about warehouse' } },
  });
  expect(await home.json(['ontology', 'propose', '--all', '--json'])).toEqual([]);
});

it('leaves a file that is not valid alone', async () => {
  await writeFile(file(), '{ "version": "0.2", "concepts": { "lower": {} } }');
  const { code, stderr } = await home.run(['ontology', 'propose', '--all', '--apply']);
  expect(code).toBe(1);
  expect(stderr).toContain('comet-cc ontology check names why');
  expect(await readFile(file(), 'utf8')).toContain('"lower"');
});

it('names the file before the facts that it no longer declares, until it is read again, also with a byte order mark', async () => {
  const facts = path.join(home.home, 'memory', 'facts');
  await mkdir(facts, { recursive: true });
  await writeFile(path.join(facts, 'user.md'), '---\nscope: user\n---\n\n- Person.Preference: small commits\n');
  // Facts of a folder without a file are asked for too.
  const turn = { session_id: 's', role: 'user', content: 'Which port is it?', project: home.user };
  await writeFile(path.join(home.user, 'turns.jsonl'), JSON.stringify(turn));
  await writeFile(file(), '{ "concepts"');
  await home.json(['memory', 'import', 'turns.jsonl', '--json']);
  const { stderr } = await home.run(['facts', 'ls']);
  expect(stderr).toMatch(/^\S+ontology\.json: is no JSON\n.*declares no Person\.Preference/);
  const concepts = { 'Person.Preference': { label: 'x', persistence_class: 'long_term', salience_weight: 0.7 } };
  await writeFile(file(), `\uFEFF${JSON.stringify({ version: '0.2', concepts })}\r\n`);
  const read = await home.run(['facts', 'ls']);
  expect(read.stdout).toContain('small commits');
  expect(read.stderr).toBe('');
});

it('checks what a pipe brings', async () => {
  const pipe = path.join(home.user, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const checked = home.run(['ontology', 'check', pipe]);
  await writeFile(pipe, '{ "version": "0.2", "concepts": { "lower": {} } }');
  expect((await checked).stdout).toContain(`${pipe}: is not valid`);
});
