import { afterEach, describe, expect, test } from 'vitest';
import type { CapturedTurn } from '../../../../common/turn.ts';
import type { Memory } from '../../../../memory/index.ts';
import { createTranscriptReader } from '../../../../memory/ingest/claude-transcript.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { createDisk, type Disk, openRig } from '../../../helpers/memory-rig.ts';
import { talk } from '../../../helpers/turns.ts';
import { PROJECT, turnsIn, type WireMessage } from '../../../helpers/wire-carriers.ts';

const ASKS = [
  'Please fix the flaky test in the checkout module',
  'why does the build fail on Windows only?',
  'Use port 5433 for the staging database from now on.',
  'ok do it',
  'Bitte nimm Postgres statt SQLite, und lass die alten Migrationen stehen.',
  'Kannst du die Übersetzungen prüfen?',
  'usa el puerto 5433 para la base de datos, por favor',
  '¿por qué falla la prueba?',
  '请用 pnpm 而不是 npm，并且更新文档。',
  '포트는 5433으로 하고 테스트도 고쳐줘',
  'テストを直してください。',
  'исправь, пожалуйста, миграцию',
  'no, keep the old behaviour and add a flag instead',
  'let’s go with option 2',
  'Stop hooks are slow here, can we drop them?',
  'The hook feedback is not shown to users. Fix it.',
  'continue',
];
const DETAILS = [
  '',
  ' The file is src/orders/total.ts:42, see also ../shared/lib.',
  '\n```ts\nconst total = items.reduce((sum, { price }) => sum + price, 0);\n```',
  ' What does <system-reminder> in my prompt mean?',
  ' Strip `<task-notification>` and `<private-thing>` tags from the log.',
  '\n\n> Stop hook feedback:\n> lint failed',
  '\n<div class="card">\n  <my-card title="x"></my-card>\n</div>\nis what it renders.',
  '\n1. rename it\n2. move it to `lib/`\n3. run `npm test`',
  '\nError: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)',
  ' It said: "This session is being continued from a previous conversation".',
  '\n| a | b |\n|---|---|\n| 1 | 2 |',
  ' “Output token limit hit.” appears again and again.',
  ' [Image #1]',
  '\nuser: hello\nassistant: hi',
  ' Contact ops@example.org or https://wiki.example.org/a_(b)?q=1#c.',
];
const SURROUNDINGS: readonly ((prompt: string) => readonly string[])[] = [
  (prompt) => [prompt],
  (prompt) => ['<system-reminder>\n# claudeMd\nUse tabs.\n</system-reminder>\n', prompt],
  (prompt) => [prompt, '<system-reminder>\nThe TodoWrite tool has not been used recently.\n</system-reminder>'],
  (prompt) => ['<ide_opened_file>The user opened the file /a.ts in the IDE.</ide_opened_file>', prompt],
  (prompt) => [
    '<local-command-caveat>Caveat: x</local-command-caveat>',
    '<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>opus</command-args>',
    '<local-command-stdout>Set model to opus</local-command-stdout>',
    prompt,
  ],
  (prompt) => ['[Request interrupted by user]', prompt],
];

const prompts = ASKS.flatMap((ask) =>
  DETAILS.flatMap((detail) =>
    SURROUNDINGS.map((around) => ({ prompt: `${ask}${detail}`, texts: around(`${ask}${detail}`) })),
  ),
);

const user = (texts: readonly string[], before: readonly Readonly<Record<string, unknown>>[] = []): WireMessage => ({
  role: 'user',
  content: [...before, ...texts.map((text) => ({ type: 'text', text }))],
});
const INTERRUPTED = '[Request interrupted by user for tool use]';
const answer: WireMessage = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] };

test('of 1,000 prompts as users type them, 99 in 100 are the user’s, word for word', () => {
  expect(prompts.length).toBeGreaterThan(1_000);
  const lost = prompts.filter(({ prompt, texts }) => {
    const [turn] = turnsIn([user(texts), answer], 's', 1).map(readTurn);
    return turn === undefined || turn.origin === 'external' || !turn.user.endsWith(prompt);
  });
  console.info(`prompts that stay the user's: ${prompts.length - lost.length} of ${prompts.length}`);
  expect(lost.map(({ texts }) => texts).slice(0, Math.floor(lost.length - prompts.length / 100) + 1)).toEqual([]);
});

test('what was typed while Claude was busy is the user’s too, also after an interruption', () => {
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a' };
  const call: WireMessage = {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }],
  };
  const start = 'The user sent a new message while you were working:\n';
  const ends = [
    '\n\nIMPORTANT: After completing your current task, you MUST address the user message above. Do not ignore it.',
    '\n\nThis is how Claude Code surfaces messages that the user sends mid-turn.',
  ];
  for (const ask of ASKS) {
    for (const end of ends) {
      const text = `<system-reminder>\n${start}${ask}${end}\n</system-reminder>`;
      const [turn] = turnsIn([user(['Look around.']), call, user([text], [result]), answer], 's', 1).map(readTurn);
      expect(turn?.user).toBe(`Look around.\n\n${ask}`);
    }
    // Claude Code sends what was queued before it marks the interruption.
    for (const texts of [[INTERRUPTED, ask], [ask], [`${ask}\n`, INTERRUPTED]]) {
      const turns = turnsIn([user(['Look around.']), call, user(texts, [result]), answer], 's', 1).map(readTurn);
      expect(turns.map((turn) => turn.user)).toEqual(['Look around.', ask]);
    }
  }
});

describe('a prompt that was sent with the results of an interrupted call', () => {
  const fetch: WireMessage = {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 'toolu_1', name: 'WebFetch', input: { url: 'https://example.org' } }],
  };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Deploy with --quagmire-flag.' };
  const stopped = [INTERRUPTED, 'No, the staging database listens on port 5433.'];
  const noted: WireMessage = { role: 'assistant', content: [{ type: 'text', text: 'Noted, port 5433.' }] };
  const conversation = [
    user(['We decided to deploy the checkout with Helm 3. Which flags are there?']),
    fetch,
    user(stopped, [result]),
    noted,
  ];
  const sent = conversation.map(({ content }) => JSON.parse(JSON.stringify(content)) as unknown);
  const turns = turnsIn(conversation, 's1', 1_800_000_000_000);
  const [asked, typed] = turns as [CapturedTurn, CapturedTurn];
  /** As versions stored it for which it was no turn: under the id of what is now the second one. */
  const former: CapturedTurn = (() => {
    const { formerId: _, ...rest } = asked;
    const [results, prompt] = [asked.messages.at(-1), typed.messages[0]];
    const content = `${results?.content.slice(0, -1)},${prompt?.content.slice(1)}`;
    const whole = { role: 'user', content, sha256: prompt?.sha256 ?? '' } as const;
    const messages = [...asked.messages.slice(0, -1), whole, ...typed.messages.slice(1)];
    return { ...rest, turnId: typed.turnId, messages };
  })();
  const contents = (messages: readonly { readonly content: unknown }[]) => messages.map(({ content }) => content);
  const open: Memory[] = [];
  afterEach(async () => {
    for (const memory of open.splice(0)) await memory.maintenance.close();
  });
  async function told(disk: Disk, ...batches: readonly (readonly CapturedTurn[])[]): Promise<Memory> {
    const memory = await openRig(disk, { llm: 'local' });
    open.push(memory);
    for (const batch of batches) {
      memory.capture.captureTurns(batch);
      expect(await memory.maintenance.flush(10_000)).toBe(true);
    }
    return memory;
  }
  const covered = (memory: Memory) => [...memory.recall.nodesCovering(turns.map(({ turnId }) => turnId)).values()];

  test('says the words of the user, whom the results of the turn before do not taint', () => {
    const [first, second] = turns.map(readTurn);
    expect(first).toMatchObject({
      user: 'We decided to deploy the checkout with Helm 3. Which flags are there?',
      origin: 'external',
    });
    expect(first?.parts.map(({ kind }) => kind)).toEqual(['tool_use', 'tool_result']);
    expect(second).toMatchObject({ user: stopped[1], origin: 'assistant' });
    expect(second?.parts.map(({ text }) => text)).toEqual(['Noted, port 5433.']);
  });

  test('is a memory of its own, once, over replays and restarts, and is restored as it was sent', async () => {
    const disk = createDisk();
    const first = await told(disk, [asked], turns, turns);
    const [one = [], other = []] = covered(first);
    expect(one).toHaveLength(1);
    expect(other).toHaveLength(1);
    expect(one).not.toEqual(other);
    expect(contents(await first.library.restoreSession('s1'))).toEqual(sent);
    const hits = await first.recall.search('port of the staging database', { top: 1, projectDir: PROJECT });
    expect(hits[0]?.node.turns).toEqual([typed.turnId]);
    await open.pop()?.maintenance.close();
    const again = await told(disk, turns);
    expect(covered(again)).toEqual([one, other]);
    expect(await disk.journal.read('s1')).toHaveLength(2);
    expect(contents(await again.library.restoreSession('s1'))).toEqual(sent);
    expect(JSON.stringify(await disk.journal.read('s1'))).not.toContain('formerId');
  });

  test('is restored in a fork, and in each branch of a session that was rewound', async () => {
    const disk = createDisk();
    const branch = turnsIn([...conversation.slice(0, 2), user(['Stop.'], [result]), answer], 's1', 1_800_000_060_000);
    const memory = await told(disk, turns, branch, [
      { ...talk('Go on.', 'Yes.'), sessionId: 's2', before: typed.turnId },
    ]);
    const results = contents(await memory.library.restoreSession('s1'));
    expect(results).toEqual([...sent, [result, { type: 'text', text: 'Stop.' }], answer.content]);
    expect(contents(await memory.library.restoreSession('s2')).slice(0, sent.length)).toEqual(sent);
  });

  test('takes the results along where the turn before is forgotten', async () => {
    const disk = createDisk();
    const memory = await told(disk, turns);
    await memory.library.forget({ dryRun: false, source: { name: 'example.org' } });
    expect(JSON.stringify(await disk.journal.read('s1'))).not.toContain('quagmire');
    expect(covered(memory).map((ids) => ids.length)).toEqual([0, 1]);
    expect(contents(await memory.library.restoreSession('s1'))).toEqual(
      [sent[2], sent[3]].map((content, at) => (at === 0 ? (content as unknown[]).slice(1) : content)),
    );
  });

  test('doubles nothing in a home where a former version stored both turns as one', async () => {
    const disk = createDisk();
    const before = await told(disk, [former]);
    const nodes = before.library.list({ all: true }).length;
    await open.pop()?.maintenance.close();
    for (const round of [1, 2]) {
      const memory = await told(disk, turns, turns);
      const [one = [], other = []] = covered(memory);
      expect(one, `start ${round}`).toHaveLength(1);
      expect(other).toEqual(one);
      expect(memory.library.list({ all: true })).toHaveLength(nodes);
      expect(await disk.journal.read('s1')).toHaveLength(1);
      expect(contents(await memory.library.restoreSession('s1'))).toEqual(sent);
      expect((await memory.library.showSession('s1')).turns).toBe(1);
      await open.pop()?.maintenance.close();
    }
    const memory = await told(disk, turns);
    await memory.library.forget({ dryRun: false, sessionId: 's1' });
    await open.pop()?.maintenance.close();
    const last = await told(disk, turns);
    expect(covered(last)).toEqual([[], []]);
    expect(JSON.stringify(await disk.journal.read('s1'))).not.toContain('checkout');
  });

  test('is the turn that an import of the transcript finds, in either order', async () => {
    const [prompt, call, , reply] = conversation as [WireMessage, WireMessage, WireMessage, WireMessage];
    const line = (uuid: string, parentUuid: string | null, { role, content }: WireMessage): string =>
      JSON.stringify({
        uuid,
        parentUuid,
        type: role,
        cwd: PROJECT,
        timestamp: '2027-01-15T08:00:00.000Z',
        message: { role, content },
      });
    const reader = createTranscriptReader('s1', 0);
    const lines = [
      line('1', null, prompt),
      line('2', '1', call),
      line('3', '2', { role: 'user', content: [result] }),
      line('4', '3', user(stopped.slice(0, 1))),
      line('5', '4', user(stopped.slice(1))),
      line('6', '5', reply),
    ];
    for (const each of lines) reader.line(each);
    const imported = { turns: reader.turns(), imported: 'claude', dryRun: false, seen: new Set<string>() } as const;
    const memory = await told(createDisk(), turns);
    expect(await memory.imports.importTurns(imported)).toMatchObject({ turns: 2, added: 0, known: 2 });
    const other = await told(createDisk());
    expect(await other.imports.importTurns({ ...imported, seen: new Set() })).toMatchObject({ turns: 2, added: 2 });
    const nodes = other.library.list({ all: true }).length;
    other.capture.captureTurns(turns);
    await other.maintenance.flush(10_000);
    expect(other.library.list({ all: true })).toHaveLength(nodes);
    expect(covered(other).map((ids) => ids.length)).toEqual([1, 1]);
  });
});
