import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { guardMemory } from '../../../engine/policy/guard.ts';
import { openPolicy, type Policy } from '../../../engine/policy/index.ts';
import { createPauseSwitch, NO_PAUSES, paused, resumed, writePauses } from '../../../engine/policy/pause.ts';
import type { Import, Memory, Recall } from '../../../memory/index.ts';
import { memoryWith } from '../../helpers/engine-services.ts';
import { makeNode } from '../../helpers/nodes.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const since = '2026-01-01T00:00:00.000Z';
const tempDir = tempDirs();
const hidesNothing = (): ReadonlySet<string> => new Set();
let temp = '';
let now = 0;
let policy: Policy;
let repo = '';
let pausesFile = '';

beforeEach(async () => {
  temp = await tempDir();
  now = Date.parse(since);
  repo = path.join(temp, 'repo');
  pausesFile = path.join(temp, 'paused.json');
  await mkdir(path.join(repo, '.git'), { recursive: true });
  await mkdir(path.join(repo, 'src'));
  policy = await open();
});

function open(): Promise<Policy> {
  const paths = { journalDir: path.join(temp, 'journal'), pausesFile, projectsFile: path.join(temp, 'projects.json') };
  return openPolicy({ paths, scope: 'project', now: () => now, report: (message) => expect.fail(message) });
}

/** Written by the user while the engine runs. */
async function projectFile(dir: string, text: string): Promise<void> {
  await writeFile(path.join(dir, '.comet-cc.json'), text);
  now += 1_000;
}

describe('what a project allows', () => {
  it('is all, in the scope of the configuration, where there is no file', () => {
    expect(policy.of(repo)).toEqual({ captures: true, adds: true, scope: 'project' });
    expect(policy.of(null)).toEqual({ captures: true, adds: true, scope: 'project' });
    expect(policy.problems()).toEqual([]);
  });

  it('is what its file leaves, for every directory below it, and never more than the configuration', async () => {
    await projectFile(repo, '{"memory": "private", "scope": "all"}');
    expect(policy.of(path.join(repo, 'src'))).toEqual({ captures: false, adds: true, scope: 'project' });
    await projectFile(path.join(repo, 'src'), '{"memory": "on", "scope": "session"}');
    expect(policy.of(path.join(repo, 'src'))).toEqual({ captures: false, adds: true, scope: 'session' });
    expect(policy.of(repo)).toMatchObject({ scope: 'project' });
    await projectFile(repo, '{"memory": "off"}');
    expect(policy.of(path.join(repo, 'src'))).toMatchObject({ captures: false, adds: false });
  });

  it('is nothing if the policy file of a clone is a link to a device', async () => {
    await symlink('/dev/zero', path.join(repo, '.comet-cc.json'));
    expect(policy.of(repo)).toMatchObject({ captures: false, adds: false });
    expect(policy.problems()).toMatchObject([{ file: path.join(repo, '.comet-cc.json') }]);
  });

  it('is nothing while its file cannot be read, and the file is named', async () => {
    for (const text of ['{', '{"memory": "of"}', '{"memory": "on", "more": 1}']) {
      await projectFile(repo, text);
      expect(policy.of(repo)).toMatchObject({ captures: false, adds: false });
      expect(policy.problems()).toMatchObject([{ file: path.join(repo, '.comet-cc.json') }]);
    }
    await rm(path.join(repo, '.comet-cc.json'));
    now += 1_000;
    expect(policy.of(repo)).toMatchObject({ captures: true, adds: true });
    expect(policy.problems()).toEqual([]);
  });
});

describe('a pause', () => {
  it('of one project leaves the others alone, and ends with its time', async () => {
    const until = new Date(now + 60_000).toISOString();
    const pauses = paused(NO_PAUSES, repo, { mode: 'off', since, until });
    await writePauses(pausesFile, pauses);
    expect(policy.of(path.join(repo, 'src'))).toMatchObject({ captures: false, adds: false });
    expect(policy.of(temp)).toMatchObject({ captures: true, adds: true });
    now += 60_000;
    expect(policy.of(repo)).toMatchObject({ captures: true, adds: true });
    expect(policy.pauses()).toEqual({ ...NO_PAUSES, past: [{ project: repo, since, until }] });
  });

  it('everywhere holds for what names no directory too, until it is taken back', async () => {
    const everywhere = paused(NO_PAUSES, null, { mode: 'private', since, until: null });
    await writePauses(pausesFile, everywhere);
    expect(policy.of(null)).toMatchObject({ captures: false, adds: true });
    await writePauses(pausesFile, resumed(everywhere, null, now));
    expect(policy.of(null)).toMatchObject({ captures: true, adds: true });
  });

  it('is assumed everywhere while its file is damaged', async () => {
    await writeFile(pausesFile, 'not json');
    expect(policy.of(repo)).toMatchObject({ captures: false, adds: false });
    expect(policy.problems()).toMatchObject([{ file: pausesFile }]);
  });

  it('is kept where others are set at the same moment, by other commands', async () => {
    const names = ['one', 'two', 'three', 'four'].map((name) => path.join(temp, name));
    await Promise.all(names.map((name) => createPauseSwitch(pausesFile, () => now).pause('off', name)));
    expect(Object.keys(policy.pauses().projects).sort()).toEqual(names.sort());
  });

  it('repairs a damaged file, and only resuming lifts what that stood for', async () => {
    const { pause, resume } = createPauseSwitch(pausesFile, () => now);
    await writeFile(pausesFile, 'not json');
    expect(await pause('private', repo)).toMatchObject({
      everywhere: { mode: 'off', until: null },
      projects: { [repo]: { mode: 'private' } },
    });
    expect(policy.of(temp)).toMatchObject({ captures: false, adds: false });
    await resume(null);
    expect(policy.of(repo)).toMatchObject({ captures: true, adds: true });
  });
});

it('what a session starts with keeps to the scope that the project asks for', async () => {
  await projectFile(repo, '{"memory": "on", "scope": "session"}');
  const asked: unknown[] = [];
  const sessionContext: Recall['sessionContext'] = async (...all) => {
    asked.push(all);
    return { brief: [], lines: [] };
  };
  const { recall } = guardMemory(memoryWith({ recall: { sessionContext } }), policy, hidesNothing);
  await recall.sessionContext('s1', repo);
  await recall.sessionContext('s1', temp);
  expect(asked).toEqual([
    ['s1', repo, 'session'],
    ['s1', temp, 'project'],
  ]);
});

it('recalls and finds nothing that is about to be removed', async () => {
  const hits = ['mem_a', 'mem_b'].map((node_id) => ({ node: makeNode({ node_id }) })) as unknown as Awaited<
    ReturnType<Recall['recall']>
  >;
  const found: Recall['recall'] = async () => hits;
  const { recall } = guardMemory(
    memoryWith({ recall: { recall: found, search: async () => hits } }),
    policy,
    () => new Set(['mem_a']),
  );
  const request = { sessionId: 's1', projectDir: repo, prompt: 'a', recent: [], visibleTurns: new Set<string>() };
  const signal = new AbortController().signal;
  expect(await recall.recall({ ...request, shown: new Set() }, signal)).toEqual([hits[1]]);
  expect(await recall.search('a', { top: 5 })).toEqual([hits[1]]);
});

it('passes on what it does not guard, also of memory that is still opening, which is no plain object', async () => {
  const called: string[] = [];
  const noting = (name: string) => async () => void called.push(name);
  const capture = { awaitCaptures: noting('awaitCaptures'), summarizeSession: noting('summarizeSession') };
  const imports = { importArchive: noting('importArchive') as never };
  const recall = { quotes: noting('quotes') as never };
  const memory = guardMemory(memoryWith({ capture, imports, recall }), policy, hidesNothing);
  await memory.capture.awaitCaptures('s1');
  await memory.capture.summarizeSession('s1');
  await memory.imports.importArchive({} as never);
  await memory.recall.quotes([]);
  expect(called).toEqual(['awaitCaptures', 'summarizeSession', 'importArchive', 'quotes']);
});

it('refuses a document where capture is off', async () => {
  const taken: string[] = [];
  const importDocument: Import['importDocument'] = async ({ projectDir }) => {
    taken.push(projectDir);
    throw new Error('enough');
  };
  const memory = guardMemory(memoryWith({ imports: { importDocument } }), policy, hidesNothing);
  await projectFile(repo, '{"memory": "private"}');
  const document = { file: path.join(repo, 'a.md'), text: 'a' };
  await expect(memory.imports.importDocument({ ...document, projectDir: repo })).rejects.toThrow('capture is off here');
  await expect(memory.imports.importDocument({ ...document, projectDir: temp })).rejects.toThrow('enough');
  expect(taken).toEqual([temp]);
});

it('captures no turn of a pause that was past us, and no summary of a session with one', async () => {
  const captured: string[] = [];
  const captureTurns: Memory['capture']['captureTurns'] = (turns) => void captured.push(...turns.map(({ key }) => key));
  const { capture } = guardMemory(memoryWith({ capture: { captureTurns } }), policy, hidesNothing);
  const pauses = paused(NO_PAUSES, null, { mode: 'off', since, until: null });
  await writePauses(pausesFile, resumed(pauses, null, now + 60_000));
  now += 120_000;
  const offer = (key: string, atMs: number, sessionId: string, text = 'go on'): void => {
    const messages = [{ role: 'user', content: JSON.stringify([{ type: 'text', text }]), sha256: '' }] as const;
    capture.captureTurns([{ key, turnId: key, sessionId, projectDir: repo, model: 'm', atMs, messages }]);
  };
  offer('before', now - 180_000, 's1');
  offer('meanwhile', now - 90_000, 's1');
  offer('after', now, 's1');
  const summary = 'This session is being continued from a previous conversation.';
  offer('summary', now, 's1', summary);
  offer('summary of another session', now, 's2', summary);
  expect(captured).toEqual(['before', 'after', 'summary of another session']);
});

it('captures a turn that ended before a pause, however late it is offered, and none that ended in it', async () => {
  const captured: string[] = [];
  const captureTurns: Memory['capture']['captureTurns'] = (turns) => void captured.push(...turns.map(({ key }) => key));
  const { capture } = guardMemory(memoryWith({ capture: { captureTurns } }), policy, hidesNothing);
  await createPauseSwitch(pausesFile, () => now).pause('off', null);
  const offer = (key: string, atMs: number): void =>
    capture.captureTurns([{ key, turnId: key, sessionId: 's1', projectDir: repo, model: 'm', atMs, messages: [] }]);
  offer('before', now - 1);
  offer('meanwhile', now);
  expect(captured).toEqual(['before']);
});

it('a turn that was withheld once stays so over a restart', async () => {
  const key = 'a'.repeat(64);
  policy.withhold(key, 's1', 'a secret');
  expect(policy.isWithheld(key)).toBe(true);
  expect(['a secret', '', 'another prompt'].map((prompt) => policy.hasWithheld('s1', prompt))).toEqual([
    true,
    true,
    false,
  ]);
  expect(policy.hasWithheld('s2', 'a secret')).toBe(false);
  await expect.poll(async () => (await open()).isWithheld(key)).toBe(true);
});
