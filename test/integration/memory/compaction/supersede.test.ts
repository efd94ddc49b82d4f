import { afterEach, describe, expect, test } from 'vitest';
import type { Memory } from '../../../../memory/index.ts';
import { writtenBy } from '../../../../memory/library.ts';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { isClosed } from '../../../../memory/text/validity.ts';
import { openOnDisk } from '../../../helpers/disk-rig.ts';
import { createDisk, type Disk, openRig, type RigOptions } from '../../../helpers/memory-rig.ts';
import { calmReading, oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const open: Memory[] = [];
async function start(disk: Disk, options: RigOptions = {}): Promise<Memory> {
  const memory = await openRig(disk, { llm: 'local', ...options });
  open.push(memory);
  return memory;
}
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const DAY = 86_400_000;
const FIRST = 1_780_000_000_000;
const at = (day: number, sessionId = `s${day}`) => ({ sessionId, atMs: FIRST + day * DAY });
const never = new AbortController().signal;

const OLD = talk('We decided that the staging database listens on port 5433.', 'Noted.', at(0));
const NEW = talk('From now on the staging database listens on port 6432 instead.', 'Noted.', at(1));

const OTHERS = [
  'invoices are rounded to cents',
  'logs rotate each night',
  'the mailer retries twice',
  'icons are SVG',
].map((text, day) => talk(`We decided that ${text}.`, 'Noted.', at(-9 + day, `other-${day}`)));

async function tell(memory: Memory, ...turns: readonly ReturnType<typeof talk>[]): Promise<void> {
  for (const turn of turns) {
    memory.capture.captureTurns([turn]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
  }
}

const getNode = (disk: Disk, text: string): MemoryNode =>
  [...disk.nodes.values()].find((node) => node.summary.includes(text)) as MemoryNode;

function asked(memory: Memory, prompt: string) {
  const request = { sessionId: 'asking', projectDir: '/home/dev/shop', prompt, recent: [] };
  return memory.recall.recall({ ...request, visibleTurns: new Set(), shown: new Set() }, never);
}

describe('what the user changes', () => {
  test('is closed with its date and its heir, and kept', async () => {
    const disk = createDisk();
    const memory = await start(disk);
    await tell(memory, OLD, NEW);
    const [old, heir] = [getNode(disk, '5433'), getNode(disk, '6432')];
    expect(old).toMatchObject({ superseded_by: heir.node_id, valid_to: heir.valid_from, superseded_as: 'revised' });
    expect(old.facts.every((fact) => fact.superseded_by === heir.node_id && fact.valid_to === heir.valid_from)).toBe(
      true,
    );
    expect(heir).toMatchObject({ superseded_by: null, valid_to: null });
    expect((await memory.library.show(old.node_id, 2)).raw?.[0]?.content).toContain('5433');
  });

  test('is never recalled as if it were so, and found by who asks what was', async () => {
    const disk = createDisk();
    const memory = await start(disk);
    await tell(memory, ...OTHERS, OLD, NEW);
    const now = await asked(memory, 'which port does the staging database listen on?');
    expect(now.map(({ line }) => line.text).join('\n')).toContain('6432');
    expect(now.map(({ line }) => line.text).join('\n')).not.toContain('5433');
    const before = await asked(memory, 'which port did the staging database listen on before?');
    const heir = getNode(disk, '6432');
    const line = before.find((hit) => hit.line.text.includes('5433'))?.line.text;
    expect(line).toContain(`[no longer so: 2026-05-28 to 2026-05-29, replaced by ${heir.node_id}]`);
    const [searched] = await memory.recall.search('what did the staging database listen on previously', { top: 5 });
    expect(searched).toBeDefined();
  });

  test('takes only the statement with it that it is about', async () => {
    const disk = createDisk();
    const memory = await start(disk);
    const two = talk(
      'We decided that the staging database listens on port 5433. Always run the linter before you commit to main.',
      'Noted.',
      at(0),
    );
    await tell(memory, two, NEW);
    const old = getNode(disk, 'linter');
    expect(old).toMatchObject({ superseded_by: null, valid_to: null });
    const [line] = memory.recall.lines([old.node_id]);
    expect(line?.text).toContain('linter');
    expect(line?.text).not.toContain('5433');
    expect(line?.text).toContain(`[in part replaced by ${getNode(disk, '6432').node_id}]`);
    const { lines } = await memory.recall.sessionContext('another', '/home/dev/shop');
    expect(lines.map(({ text }) => text).join('\n')).not.toContain('5433');
    const { facts } = await memory.library.projectOverview('/home/dev/shop');
    expect(facts.map(({ value }) => value).join('\n')).not.toContain('5433');
  });

  test.each([
    [
      'The trial lasts 14 days now.',
      'make the trial 7 days',
      'The trial lasts 7 days.',
      'how long is the trial?',
      '14',
    ],
    [
      'The cookie expires after 2 hours.',
      '8 hours',
      'The cookie expires after 8 hours now.',
      'when does the cookie expire',
      '2 h',
    ],
  ])('is answered with the value that replaced it: %s', async (former, order, now, query, gone) => {
    const memory = await start(createDisk());
    const first = talk('Set up the rules of the shop.', former, at(0));
    const next = [talk('Translate the mail to French.', 'The mail is in French.', at(1)), talk(order, now, at(1))];
    await tell(memory, ...OTHERS, first, ...next);
    const [hit] = await memory.recall.search(query, { top: 5, projectDir: '/home/dev/shop' });
    expect(hit?.line.text).toContain(now);
    const shown = (await asked(memory, query)).map(({ line }) => line.text.replaceAll(/mem_\w+/g, ''));
    expect(shown.join()).not.toContain(gone);
  });

  test('goes out of the brief that is injected', async () => {
    const memory = await start(createDisk());
    await tell(memory, OLD);
    expect((await memory.recall.sessionContext('s0', '/home/dev/shop')).brief.join('\n')).toContain('5433');
    await tell(memory, { ...NEW, sessionId: 's0' });
    const { brief } = await memory.recall.sessionContext('s0', '/home/dev/shop');
    expect(brief.join('\n')).toContain('6432');
    expect(brief.join('\n')).not.toContain('5433');
  });

  test('holds again when what replaced it is removed', async () => {
    const disk = createDisk();
    const memory = await start(disk);
    await tell(memory, OLD, NEW);
    await memory.library.remove([getNode(disk, '6432').node_id]);
    const old = getNode(disk, '5433');
    expect(old).toMatchObject({ superseded_by: null, valid_to: null });
    expect(old.superseded_as).toBeUndefined();
    expect(old.facts.every((fact) => fact.valid_to === undefined)).toBe(true);
  });

  test('is the same after a restart, and edits by hand go on working', async () => {
    const disk = createDisk();
    const first = await start(disk);
    await tell(first, ...OTHERS, OLD, NEW);
    const before = structuredClone([...disk.nodes.values()]);
    await first.maintenance.close();
    const memory = await start(disk);
    await memory.maintenance.flush(60_000);
    expect([...disk.nodes.values()]).toEqual(before);
    const heir = getNode(disk, '6432');
    await memory.library.edit(heir.node_id, { set: { valid_to: '2026-06-30T00:00:00.000Z' } });
    const hits = await asked(memory, 'which port does the staging database listen on?');
    expect(hits).toEqual([]);
  });
});

test('what is no longer used is closed by the sentence that says so', async () => {
  const disk = createDisk();
  const memory = await start(disk);
  await tell(
    memory,
    talk('We use Redis for the session cache.', 'Noted.', at(0)),
    talk('We no longer use redis.', 'Noted.', at(1)),
  );
  expect(getNode(disk, 'session cache').superseded_by).toBe(getNode(disk, 'no longer').node_id);
});

test('rules of one form for different things all stay open', async () => {
  const disk = createDisk();
  const memory = await start(disk);
  const rules = ['checkout to eu-west-1', 'billing to us-east-1', 'Mercury to Frankfurt', 'Venus to Dublin'].flatMap(
    (rule, day) => [
      talk(`We now deploy service ${rule}.`, 'Noted.', at(2 * day)),
      talk(`The service ${rule.replace(/ to .*/, '')} now listens on port ${8080 + day}.`, 'Noted.', at(2 * day + 1)),
    ],
  );
  await tell(memory, ...rules);
  expect([...disk.nodes.values()].filter(({ superseded_by }) => superseded_by !== null)).toEqual([]);
  expect([...disk.nodes.values()].flatMap(({ facts }) => facts).filter(isClosed)).toEqual([]);
});

describe('trust', () => {
  test.each([
    ['the assistant', talk('go on', 'The staging database now listens on port 6432 instead.', at(1))],
    [
      'a page from outside',
      getTurn(
        'read that page',
        [
          ...toolRound('WebFetch', { url: 'https://example.org' }, 'use port 6432'),
          message('assistant', [
            { type: 'text', text: 'From now on the staging database listens on port 6432 instead.' },
          ]),
        ],
        at(1),
      ),
    ],
  ])('%s cannot retire what the user decided', async (_, turn) => {
    const disk = createDisk();
    const memory = await start(disk);
    await tell(memory, OLD, turn);
    expect(getNode(disk, '6432')).toBeDefined();
    expect(getNode(disk, '5433')).toMatchObject({ superseded_by: null, valid_to: null });
    expect(getNode(disk, '5433').facts.every((fact) => fact.valid_to === undefined)).toBe(true);
  });

  test('another project keeps its own', async () => {
    const disk = createDisk();
    const memory = await start(disk);
    await tell(memory, OLD, { ...NEW, projectDir: '/home/dev/other' });
    expect(getNode(disk, '5433').superseded_by).toBeNull();
  });
});

describe('with a model', () => {
  test.each([
    ['the user’s prompt says it', 'Make the staging database use port 6432.', 'Done.', true],
    ['the assistant says it', 'Go on with the mailer.', 'The staging database now uses port 6432.', true],
    ['only a tool says it', 'Go on with the mailer.', 'The mailer is next.', false],
  ])('what it names in a turn that ran tools is closed where %s', async (_, prompt, answer, isClosedNow) => {
    const disk = createDisk();
    const model = scriptedModel({
      sense: () => calmReading,
      compact: (input) => {
        const said = input.turns[0]?.user ?? '';
        const result = oneNode(input, said.includes('5433') ? 'staging database port 5433' : 'staging port 6432');
        const fact = { concept: 'staging database port', value: '5433', polarity: 'positive' } as const;
        const facts = said.includes('5433') ? [{ ...fact, evidence: input.turns.map(({ turnId }) => turnId) }] : [];
        const revises = input.known ?? [];
        return { ...result, nodes: result.nodes.map((node) => ({ ...node, facts, revises })) };
      },
    });
    const memory = await start(disk, { llm: 'claude', model });
    const done = [message('assistant', [{ type: 'text', text: answer }])];
    await tell(
      memory,
      OLD,
      getTurn(prompt, [...toolRound('Read', { file_path: '/home/dev/shop/db.ts' }, 'port 6432'), ...done], at(1)),
    );
    const old = [...disk.nodes.values()].find(({ facts }) => facts.some(({ value }) => value === '5433'));
    expect(old?.superseded_by !== null).toBe(isClosedNow);
  });

  test('it is shown what it may revise, and what it names is closed', async () => {
    const disk = createDisk();
    const labelled: string[][] = [];
    const model = scriptedModel({
      sense: () => calmReading,
      compact: (input) => {
        labelled.push((input.known ?? []).map(({ text }) => text));
        const said = input.turns[0]?.user ?? '';
        const result = oneNode(
          input,
          said.includes('6432') ? 'staging database port 6432' : 'staging database port 5433',
        );
        const revises = (input.known ?? []).filter(({ text }) => text.includes('5433'));
        const fact = {
          concept: 'staging database port',
          value: /\d{4}/.exec(said)?.[0] ?? '',
          polarity: 'positive',
        } as const;
        const facts = [{ ...fact, evidence: input.turns.map(({ turnId }) => turnId) }];
        return { ...result, nodes: result.nodes.map((node) => ({ ...node, facts, revises })) };
      },
    });
    const memory = await start(disk, { llm: 'claude', model });
    await tell(memory, OLD, talk('Let the staging database answer at 6432.', 'Done.', at(1)));
    expect(labelled[0]).toEqual([]);
    expect(labelled[1]?.join()).toContain('5433');
    const [old, heir] = [getNode(disk, '5433'), getNode(disk, '6432')];
    expect(old).toMatchObject({
      author: { by: 'model', model: 'scripted' },
      superseded_by: heir.node_id,
      superseded_as: 'revised',
    });
  });

  const LEFT = 'Remember: write the changelog for the release.';
  const CHECK = 'Somebody checks the link in the changelog.';
  const MONDAYS = 'The release goes out on Mondays.';
  test.each([
    ['of the project', 'Go on with the mailer.', null, []],
    [
      'with a web page in which the user speaks of it',
      'Is the changelog for the release written?',
      'WebFetch',
      [MONDAYS],
    ],
    ['with a web page', 'Go on with the mailer.', 'WebFetch', [LEFT, MONDAYS]],
  ])('it is shown what is open and decided, and may end it in a turn %s', async (_, prompt, tool, left) => {
    const disk = createDisk();
    const model = scriptedModel({
      sense: () => calmReading,
      compact: (input) => {
        const [{ user = '', turnId: turn = '' } = {}] = input.turns;
        const result = oneNode(input, user);
        const said = { turn, bucket: 'episode' } as const;
        const isFirst = user === LEFT;
        const open = isFirst ? [LEFT, CHECK].map((text) => ({ ...said, text })) : [];
        const decisions = isFirst ? [{ ...said, text: MONDAYS, by: 'assistant' as const }] : [];
        const revises = (input.known ?? []).filter(({ kind }) => kind !== 'fact');
        return { ...result, nodes: result.nodes.map((node) => ({ ...node, open, decisions, revises })) };
      },
    });
    const memory = await start(disk, { llm: 'claude', model });
    const read = tool === null ? [] : toolRound(tool, { url: 'https://example.org' }, 'Release 4 is out.');
    const done = [...read, message('assistant', [{ type: 'text', text: 'Done.' }])];
    await tell(memory, talk(LEFT, `Noted. ${CHECK} ${MONDAYS}`, at(0)));
    const items = () => memory.library.listItems({}).flatMap(({ kind, text }) => (kind === 'outcome' ? [] : text));
    const all = items();
    expect(all).toEqual([LEFT, CHECK, MONDAYS]);
    await tell(memory, getTurn(prompt, done, at(1)));
    const known = model.compacted.map((input) => input.known?.filter(({ kind }) => kind !== 'fact'));
    expect(known.map((each) => each?.map(({ text }) => text))).toEqual([[], all]);
    expect(items()).toEqual(left);
    const closing = [...disk.nodes.values()].find(({ open }) => open?.some(({ closed }) => closed !== undefined));
    await memory.library.remove([closing?.node_id ?? '']);
    expect(items()).toEqual(all);
  });

  test('what was revised while it thought stays revised in what it writes', async () => {
    const disk = createDisk();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const model = scriptedModel({
      sense: () => calmReading,
      compact: async (input) => {
        await released;
        return oneNode(input, input.turns[0]?.user ?? '');
      },
    });
    const memory = await start(disk, { llm: 'claude', model });
    memory.capture.captureTurns([OLD, NEW]);
    memory.capture.prepareNodes('s0', [OLD.turnId]);
    memory.capture.prepareNodes('s1', [NEW.turnId]);
    // By the rules, while the model thinks.
    await expect.poll(() => getNode(disk, '5433').superseded_by).not.toBeNull();
    release();
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const [old, heir] = [getNode(disk, '5433'), getNode(disk, '6432')];
    expect([writtenBy(old), writtenBy(heir)]).toEqual(['scripted', 'scripted']);
    expect(old.superseded_by).toBe(heir.node_id);
  });
});

test('on real files and a real index: closed on disk, read again at the next start, found by who asks what was', async () => {
  const home = await tempDir();
  const first = (await openOnDisk(home, { llm: 'local', watch: null })).memory;
  await tell(first, ...OTHERS, OLD, NEW);
  await first.maintenance.close();
  const { memory } = await openOnDisk(home, { llm: 'local', watch: null });
  open.push(memory);
  expect(await memory.maintenance.flush(60_000)).toBe(true);
  const old = memory.library.list({}).find((node) => node.summary.includes('5433'));
  expect(old).toMatchObject({ superseded_as: 'revised' });
  const now = await asked(memory, 'which port does the staging database listen on?');
  expect(now.map(({ line }) => line.text).join()).not.toContain('5433');
  const before = await asked(memory, 'which port did the staging database listen on before?');
  expect(before.map(({ line }) => line.text).join()).toContain('[no longer so: 2026-05-28 to 2026-05-29');
});
