import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Config } from '../../../common/config.ts';
import { silentLog } from '../../../common/log.ts';
import { grouped } from '../../../common/map.ts';
import { countTokens } from '../../../common/text.ts';
import { createHookHandlers } from '../../../engine/api/hooks.ts';
import { LIBRARY_HEADING } from '../../../memory/pages/library-block.ts';
import { openPageFiles } from '../../../memory/storage/fs/page-files.ts';
import { libraryPaths } from '../../../memory/storage/paths.ts';
import { openTaskFiles } from '../../../memory/tasks/fs/task-files.ts';
import type { RewriterConfig } from '../../../proxy/rewrite/index.ts';
import { earlyConfig } from '../../fuzz/rewriter-rig.ts';
import { createMemoryFactFiles } from '../../helpers/memory-fact-files.ts';
import { createDisk, getLibraryBlock, openRig } from '../../helpers/memory-rig.ts';
import { type Played, play } from '../../helpers/rewriter-play.ts';
import { openTaskRig } from '../../helpers/task-rig.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';
import { type Json, seededPlan } from '../../helpers/transcripts.ts';
import { talk } from '../../helpers/turns.ts';

const tempDir = tempDirs();
const DAY = 86_400_000;

/** Memory, pages and tasks of a home on disk, in which the user has said what they prefer. */
async function open(projectDir: string) {
  const home = await tempDir();
  const disk = createDisk();
  const { nowMs } = disk;
  const dir = path.join(home, 'library');
  const pageFiles = await openPageFiles({ dir, nodesDir: path.join(home, 'nodes') });
  const rig = openTaskRig(await openTaskFiles(libraryPaths(dir, { libraryDir: '' })), { clock: disk });
  const memory = await openRig(disk, { llm: 'local', pageFiles, tasks: rig.tasks });
  const said = ['I prefer tabs over spaces.', 'We decided to use Redis for the session cache.'];
  memory.capture.captureTurns(
    said.map((text) => talk(text, 'Noted.', { sessionId: 'before', projectDir, atMs: nowMs })),
  );
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  await memory.maintenance.dream({ dryRun: false });
  expect(await memory.library.linkedBlock()).toContain('I prefer tabs over spaces');
  const source = { ...memory.capture, ...memory.recall, captured: new Map() };
  return { ...rig, memory, source, disk, dir, profile: path.join(dir, 'topics', 'user_profile.md') };
}

function getSystem({ body }: Played): string {
  const { system } = JSON.parse(body.toString()) as { system: readonly Json[] };
  // The attribution differs in each request.
  return JSON.stringify(system.slice(1).map(({ text }) => text));
}

const blocksIn = (text: string): number => text.split(LIBRARY_HEADING).length - 1;

describe('the library in the system block', () => {
  test('stays as it is within an epoch while pages and tasks change, and is refused nothing', async () => {
    const plan = seededPlan(3, { turns: 8, bulk: 400 });
    const rig = await open(plan.cwd);
    const { refusals, sent } = await play(plan, {
      config: earlyConfig({ keepRounds: 1_000 }),
      memory: rig.source,
      async onAnswered({ request: { index } }) {
        await appendFile(rig.profile, `\n- my own line ${index}\n`);
        await writeFile(path.join(rig.dir, 'topics', `page-${index}.md`), `# Page ${index}\n`);
        await rig.tasks.add({ title: `Task ${index}`, origin: 'user', projectDir: plan.cwd });
        if (index % 2 === 1) await rm(path.join(rig.dir, 'topics', `page-${index - 1}.md`));
        expect(await rig.memory.maintenance.flush(60_000)).toBe(true);
        // A prompt does not wait long for a changed library.
        await getLibraryBlock(rig.memory, plan.cwd);
      },
    });
    expect(refusals).toEqual([]);
    const epochs = grouped(sent, (played) => played.plan?.id ?? '');
    expect(epochs.size).toBeGreaterThan(1);
    for (const within of epochs.values()) expect(new Set(within.map(getSystem)).size).toBe(1);
    const texts = [...epochs.values()].map(([first]) => getSystem(first as Played));
    expect(new Set(texts).size).toBe(epochs.size);
    for (const text of texts) {
      expect(blocksIn(text)).toBe(1);
      expect(text).toContain('I prefer tabs over spaces');
    }
    expect(texts[0]).not.toContain('my own line');
    expect(texts.at(-1)).toMatch(/my own line \d.*Page \d/);
    expect(texts.at(-1)).toMatch(/Task \d/);
    await rig.memory.maintenance.close();
  });

  test('is left out where nothing is in it, and where the user wants none of it', async () => {
    const plan = seededPlan(3, { turns: 1, rounds: 0 });
    const rig = await open(plan.cwd);
    const first = async () =>
      getSystem((await play(plan, { config: earlyConfig(), memory: rig.source })).sent[0] as Played);
    expect(blocksIn(await first())).toBe(1);
    // A project that recalls nothing of other sessions.
    expect(await rig.memory.recall.sessionContext('other', plan.cwd, 'session')).not.toHaveProperty('library');
    await rm(rig.dir, { recursive: true });
    expect(await getLibraryBlock(rig.memory, plan.cwd)).toBe('');
    expect(blocksIn(await first())).toBe(0);
    await rig.memory.maintenance.close();

    const off = Config.parse({ llm: 'local', inject: { libraryTokens: 0 } });
    const pageFiles = await openPageFiles({ dir: rig.dir, nodesDir: rig.dir });
    await mkdir(path.join(rig.dir, 'topics'), { recursive: true });
    await writeFile(rig.profile, '- my own line\n');
    const memory = await openRig(createDisk(), { config: off, pageFiles });
    expect(await getLibraryBlock(memory, null)).toBe('');
    await memory.maintenance.close();
  });

  test('does not repeat the lines of a linked memory file', async () => {
    const plan = seededPlan(3, { turns: 1, rounds: 0 });
    for (const projectDir of [plan.cwd, null]) {
      const rig = await open(plan.cwd);
      const prompt = await getLibraryBlock(rig.memory, projectDir);
      const linked = { ...plan, turns: plan.turns.map((turn) => ({ ...turn, prompt })) };
      const { sent } = await play(linked, { config: earlyConfig(), memory: rig.source });
      const [, block = ''] = getSystem(sent[0] as Played).split(LIBRARY_HEADING);
      // What belongs to the user alone has no page of the project.
      expect(block.match(/\n### [^\\]+|topics\/[\w-]+/g) ?? []).toEqual(
        projectDir === null ? ['topics/app-two-database'] : [],
      );
      expect(block).not.toMatch(/Folder:|About the user/);
      await rig.memory.maintenance.close();
    }
  });

  test('asks a due question at the first prompt of the next session, once', async () => {
    const plan = seededPlan(3, { turns: 2, rounds: 0 });
    const rig = await open(plan.cwd);
    const task = { title: 'Check dispenser 47', mode: 'question', origin: 'user', projectDir: plan.cwd } as const;
    await rig.tasks.add({ ...task, at: new Date(rig.disk.nowMs + DAY).toISOString() });
    rig.disk.nowMs += 2 * DAY;
    await rig.surfacing.look();
    const texts: string[] = [];
    for (const sessionId of ['next', 'after']) {
      const { sent } = await play({ ...plan, sessionId }, { config: earlyConfig(), memory: rig.source });
      texts.push(getSystem(sent[0] as Played));
    }
    expect(texts[0]).toMatch(/Ask the user about these due tasks.*Check dispenser 47/);
    expect(texts[0]?.split('Check dispenser 47')).toHaveLength(2);
    expect(texts[1]).not.toContain('Ask the user about');
    await rig.memory.maintenance.close();
  });

  test('and its index follow the tasks, also while a pass runs', async () => {
    const { memory, tasks, surfacing, dir, disk } = await open('/home/dev/shop');
    const index = () => readFile(path.join(dir, 'INDEX.md'), 'utf8');
    surfacing.start(memory.maintenance.refreshIndex);
    const { name, id } = await tasks.add({ title: 'Check the printer', origin: 'user', projectDir: null });
    await expect.poll(index).toContain('[Check the printer]');
    await writeFile(path.join(dir, 'tasks', 'active', `${name}.md`), '---\ntitle: Check the scanner\n---\n');
    await surfacing.look();
    await expect.poll(index).toContain('[Check the scanner]');
    const turn = { sessionId: 'later', projectDir: '/home/dev/shop', atMs: disk.nowMs };
    memory.capture.captureTurns([talk('Always run the migrations before the deploy.', 'Noted.', turn)]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const titles = ['One', 'Two', 'Three'];
    const [report] = await Promise.all([
      memory.maintenance.dream({ dryRun: false }),
      ...titles.map((title) => tasks.add({ title, origin: 'user', projectDir: null })),
    ]);
    expect(report.pages.added).toBe(1);
    for (const listed of [...titles.map((title) => `[${title}]`), '2 statements']) {
      await expect.poll(index).toContain(listed);
    }
    await tasks.setStatus(id, 'done');
    await expect.poll(index).not.toContain('scanner');
    await surfacing.close();
    await memory.maintenance.close();
  });

  test('comes by the SessionStart hook where the session does not use the proxy', async () => {
    const rig = await open('/home/dev/shop');
    let linked = '';
    const hooks = createHookHandlers({
      subagents: { ofType: async () => null, note: () => undefined },
      memory: rig.memory,
      policy: { of: () => ({ captures: true, adds: true, scope: 'project' }) },
      config: Config.parse({}),
      linkedText: async () => linked,
      log: silentLog,
      now: () => rig.disk.nowMs,
    });
    const start = { projectDir: '/home/dev/shop', adds: true };
    const { text } = await hooks.sessionStart({ ...start, sessionId: 'one' });
    expect(blocksIn(text)).toBe(1);
    expect(text).toContain('I prefer tabs over spaces');
    expect(countTokens(text)).toBeLessThan(4_000);
    expect((await hooks.sessionStart({ ...start, sessionId: 'one' })).text).toBe('');
    expect((await hooks.sessionStart({ ...start, sessionId: 'two', adds: false })).text).toBe('');
    await writeFile(path.join(rig.dir, 'topics', 'mine.md'), '# Mine\n');
    const { library } = rig.memory;
    linked = await library.linkedBlock();
    expect(linked).toContain('Mine (topics/mine.md)');
    const { text: rest } = await hooks.sessionStart({ ...start, sessionId: 'three' });
    expect(rest).not.toContain('Mine (topics/mine.md)');
    expect(rest).toContain('Database (shop)');
    await rig.memory.maintenance.close();
  });
});

describe('facts in the system block', () => {
  const change = '- no longer Project.Decision: \\"Redis for the cache\\"';
  const timesIn = ({ body }: Played): number => body.toString().split(change).length - 1;

  /** A conversation in whose first turn another session says that a fact no longer holds. */
  async function playNegation(config: RewriterConfig) {
    const plan = seededPlan(3, { turns: 8, bulk: 400 });
    const memory = await openRig(createDisk(), { llm: 'local', factFiles: createMemoryFactFiles() });
    const { capture, library, maintenance, recall } = memory;
    const say = async (text: string): Promise<void> => {
      capture.captureTurns([talk(text, 'Noted.', { sessionId: 'other', projectDir: plan.cwd, key: text })]);
      expect(await maintenance.flush(60_000)).toBe(true);
    };
    await say('We use Redis for the cache.');
    let isSaid = false;
    const { refusals, sent } = await play(plan, {
      config,
      memory: { ...capture, ...recall, captured: new Map() },
      async onAnswered() {
        // Only stored turns can be cut.
        expect(await maintenance.flush(60_000)).toBe(true);
        if (isSaid) return;
        isSaid = true;
        await say('We no longer use redis.');
        expect((await library.listFacts({ projectDir: plan.cwd })).facts).toEqual([]);
      },
    });
    expect(refusals).toEqual([]);
    await maintenance.close();
    const epochs = [...grouped(sent, (played) => played.plan?.id ?? '').values()];
    for (const within of epochs) expect(new Set(within.map(getSystem)).size).toBe(1);
    return { sent, blocks: epochs.map(([played]) => getSystem(played as Played)) };
  }

  /** Recall may quote what was said, beside what replaced it. */
  const withoutRecalled = (text: string): string => text.replaceAll(/- \[mem_.*?(?=\\n|")/g, '');

  test('stay as they are within an epoch; one that is negated is named with the next prompt, once', async () => {
    const { sent, blocks } = await playNegation({ ...earlyConfig(), cut: null });
    expect(blocks).toHaveLength(1);
    expect(blocks[0]).toContain('Redis for the cache');
    const times = sent.map(timesIn);
    expect(times[0]).toBe(0);
    expect(new Set(times.slice(times.indexOf(1)))).toEqual(new Set([1]));
  });

  test('one that is negated is gone with the next epoch', async () => {
    const { sent, blocks } = await playNegation(earlyConfig({ keepRounds: 1_000 }));
    expect(blocks.length).toBeGreaterThan(1);
    expect(blocks[0]).toContain('Redis for the cache');
    for (const text of blocks.slice(1)) expect(withoutRecalled(text)).not.toContain('Redis for the cache');
    expect(Math.max(...sent.map(timesIn))).toBeLessThanOrEqual(1);
  });
});
