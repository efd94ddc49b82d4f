import { describe, expect, test } from 'vitest';
import { readTurnState } from '../../../../memory/compaction/turn-state.ts';
import { createTranscriptReader } from '../../../../memory/ingest/claude-transcript.ts';
import { captureImported, isComplete, turnContentHash } from '../../../../memory/ingest/imported-turn.ts';
import { createTurnRegistry } from '../../../../memory/ingest/turn-registry.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { transcriptLines } from '../../../helpers/claude-home.ts';
import { talk } from '../../../helpers/turns.ts';

const T0 = Date.parse('2026-03-01T10:00:00Z');
const session = {
  sessionId: 's1',
  cwd: '/home/dev/shop',
  turns: [
    { prompt: 'Which port?', answer: 'Port 4711.', atMs: T0 },
    {
      prompt: 'Count them.',
      answer: 'There are 60.',
      atMs: T0 + 60_000,
      tool: { name: 'Bash', input: { command: 'grep -c x src/a.ts' }, result: '60' },
    },
  ],
};

const WRITTEN = T0 + 3_600_000;

function read(lines: readonly string[]) {
  const reader = createTranscriptReader('s1', WRITTEN);
  for (const line of lines) reader.line(line);
  return { turns: reader.turns(), skipped: reader.skipped() };
}

describe('a transcript of Claude Code', () => {
  test('gives turns with their messages, times and place, and no thinking', () => {
    const { turns, skipped } = read(transcriptLines(session));
    expect(turns).toHaveLength(2);
    expect(turns[0]).toMatchObject({
      sessionId: 's1',
      projectDir: '/home/dev/shop',
      startMs: T0,
      atMs: T0 + 3_000,
      after: -1,
    });
    expect(turns[1]?.after).toBe(0);
    expect(turns[1]?.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Count them.' }] },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'grep -c x src/a.ts' } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '60' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'There are 60.' }] },
    ]);
    expect(turns.every(isComplete)).toBe(true);
    expect(skipped).toEqual({ broken: 0, other: 3, side: 0, summary: 0 });
  });

  test('calls a turn unfinished that the user stopped', () => {
    const line = (uuid: string, parentUuid: string | null, role: 'user' | 'assistant', content: unknown) =>
      JSON.stringify({ type: role, uuid, parentUuid, sessionId: 's1', message: { role, content } });
    const lines = [
      line('a', null, 'user', 'Add a retry to the queue.'),
      line('b', 'a', 'assistant', [{ type: 'text', text: 'Let me look.' }]),
      line('c', 'b', 'user', [{ type: 'text', text: '[Request interrupted by user]' }]),
    ];
    const typed = line('d', 'c', 'user', 'Which queues are there?');
    for (const all of [lines, [...lines, typed]]) {
      const captures = captureImported(read(all).turns, 'claude', 'p');
      expect(captures.map(({ unfinished }) => unfinished)).toEqual([true, undefined]);
    }
    expect(readTurnState(readTurn(captureImported(read(lines).turns, 'claude', 'p')[0] as never)).outcome).toBe(
      'Not finished: “Add a retry to the queue.”',
    );
  });

  test('takes what is written once more for what was said once', () => {
    const lines = transcriptLines(session);
    for (let from = 0; from < lines.length; from += 1) {
      expect(read([...lines, ...lines.slice(from)])).toMatchObject({ turns: read(lines).turns });
    }
  });

  test('takes turns without a time to be as old as the file', () => {
    const line = '{"type":"user","uuid":"a","message":{"role":"user","content":"Which port?"}}';
    expect(read([line]).turns[0]).toMatchObject({ startMs: WRITTEN, atMs: WRITTEN });
  });

  test('counts what is no turn, and reads on after it', () => {
    const strange = [
      '{"type":"summary","summary":"Ports","leafUuid":"x"}',
      '{"type":"user","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued"}}',
      '{"type":"user","isSidechain":true,"message":{"role":"user","content":"a subagent is told this"}}',
      '{"type":"user","isMeta":true,"message":{"role":"user","content":"Caveat: commands"}}',
      '{"type":"assistant","isApiErrorMessage":true,"message":{"role":"assistant","model":"<synthetic>","content":[]}}',
      '{"type":"something-new","x":1}',
      'null',
      '{"type":"user","mess',
    ];
    const { turns, skipped } = read([...strange, ...transcriptLines(session), ...strange]);
    expect(turns).toHaveLength(2);
    expect(skipped).toEqual({ broken: 4, other: 9, side: 2, summary: 4 });
  });

  test('keeps both branches of a rewound conversation, each after the turn it follows', () => {
    const lines = transcriptLines(session);
    const first = JSON.parse(lines.find((line) => line.includes('Port 4711.')) as string) as { uuid: string };
    const branch = (uuid: string, parentUuid: string, role: string, text: string): string =>
      JSON.stringify({ type: role, uuid, parentUuid, message: { id: uuid, role, content: [{ type: 'text', text }] } });
    const { turns } = read([
      ...lines,
      branch('b1', first.uuid, 'user', 'No: which host?'),
      branch('b2', 'b1', 'assistant', 'Host quince.'),
    ]);
    expect(turns.map(({ after }) => after)).toEqual([-1, 0, 0]);
    expect(JSON.stringify(turns[2]?.messages)).toContain('Host quince.');
  });

  test('says which turns the user went back behind, also to the first prompt, and never what was queued', () => {
    const put = (uuid: string, parentUuid: string | null, role: string, content: string): string =>
      JSON.stringify({ type: role, uuid, parentUuid, message: { id: uuid, role, content } });
    const attachment = { type: 'queued_command', prompt: 'Mind the crane.', commandMode: 'prompt' };
    const { turns } = read([
      ...[put('a1', null, 'user', 'Which dock?'), put('a2', 'a1', 'assistant', 'Dock 4.')],
      ...[put('b1', 'a2', 'user', 'Use dock 5.'), put('b2', 'b1', 'assistant', 'Fine.')],
      ...[put('c1', null, 'user', 'Which pier?'), put('c2', 'c1', 'assistant', 'Pier 7.')],
      JSON.stringify({ type: 'attachment', uuid: 'q1', parentUuid: 'c2', attachment }),
      ...[put('d1', 'c2', 'user', 'Use pier 8.'), put('d2', 'd1', 'assistant', 'Fine.')],
      ...[put('e1', 'c2', 'user', 'Use pier 9.'), put('e2', 'e1', 'assistant', 'Fine.')],
    ]);
    const book = createTurnRegistry();
    const past = captureImported(turns, 'claude', 'p').map((turn) => ({ ...turn, project: 'p' }));
    for (const turn of past) book.record(turn, readTurn(turn as never));
    const left = past.filter(({ turnId }) => book.areAbandoned([turnId]));
    expect(left.map((turn) => readTurn(turn as never).user)).toEqual(['Which dock?', 'Use dock 5.', 'Use pier 8.']);
    const live = { ...past[0], turnId: 'live', key: 'live', imported: undefined };
    book.record(live as never, { ...readTurn(live as never), user: 'Which dock, then?' });
    expect(book.areAbandoned([past[2]?.turnId ?? ''])).toBe(false);
  });

  test('is not over while a call is open', () => {
    const open = transcriptLines(session).slice(0, -2);
    expect(isComplete(read(open).turns[1] as never)).toBe(false);
  });
});

describe('a line of Claude Code 2.1.332 that looks like a prompt', () => {
  const put = (uuid: string, role: string, text: string, more: object = {}): string =>
    JSON.stringify({ type: role, uuid, message: { id: uuid, role, content: [{ type: 'text', text }] }, ...more });
  /** What the user and the others said in the last turn of a session that ends with such a line. */
  const readLast = (more: object, text = 'Look whether crate 41 came.') => {
    const { turns } = read([...transcriptLines(session), put('z1', 'user', text, more), put('z2', 'assistant', 'No.')]);
    const last = readTurn(captureImported(turns, 'claude', 'p').at(-1) as never);
    return { turns: turns.length, user: last.user, origins: last.parts.map(({ kind, origin }) => `${kind} ${origin}`) };
  };
  const hidden = { isMeta: true, promptSource: 'system' };
  const others: Record<string, object> = {
    'from a schedule': { ...hidden, wakeupSource: 'schedule_wakeup', turnOrigin: 'scheduled' },
    'from another session': { origin: { kind: 'peer', from: 'x' }, turnOrigin: 'peer' },
    'with an unclassified origin': { origin: { kind: 'unclassified' }, textNotTyped: true },
  };

  test.each(Object.keys(others))('is a turn, and not the words of the user: %s', (name) => {
    const outside = { turns: 3, user: '', origins: ['tool_result external', 'assistant external'] };
    expect(readLast(others[name] as object)).toEqual(outside);
  });

  test('is the user', () => {
    const typed = { turns: 3, user: 'Look whether crate 41 came.', origins: ['assistant assistant'] };
    for (const kind of ['human', undefined]) {
      const origin = kind === undefined ? {} : { origin: { kind } };
      expect(readLast({ ...origin, promptSource: 'typed', turnOrigin: 'human' })).toEqual(typed);
    }
  });

  test('starts a turn of its own where a hook made Claude go on, as on the wire', () => {
    const feedback = { isMeta: true, rowSource: 'hook', hookText: true };
    const own = { turns: 3, user: '', origins: ['assistant assistant'] };
    expect(readLast(feedback, 'Stop hook feedback:\nYou forgot crate 41.')).toEqual(own);
    // Before the line said so, it was a part of the turn.
    expect(readLast({ isMeta: true }, 'Stop hook feedback:\nYou forgot crate 41.').turns).toBe(2);
  });

  test('is a report of a task, which taints the turn that takes it up', () => {
    const report = '<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\n60 boats\n</system-reminder>';
    const attachment = { type: 'queued_command', prompt: '60 boats', commandMode: 'task-notification' };
    const [answer = '', ...before] = transcriptLines(session).reverse();
    const { uuid } = JSON.parse(before[0] ?? '') as { uuid: string };
    const reported = (more: object) => {
      const line = JSON.stringify({ type: 'attachment', uuid: 'q', parentUuid: uuid, attachment, ...more });
      const { turns } = read([...before.toReversed(), line, answer]);
      return readTurn(captureImported(turns, 'claude', 'p').at(-1) as never);
    };
    expect(reported({ rendered: [{ content: report }] })).toMatchObject({ user: 'Count them.', origin: 'external' });
    expect(reported({ rendered: [{ content: report }] }).parts.at(-1)).toMatchObject({ origin: 'external' });
    expect(reported({}).parts.at(-1)).toMatchObject({ origin: 'assistant' });
  });

  test('has the image that it names', () => {
    const file = { base64: 'aGk=', type: 'image/png' };
    const image = (more: object): string =>
      JSON.stringify({
        type: 'attachment',
        parentUuid: 'z1',
        attachment: { type: 'file', content: { type: 'image', file } },
        ...more,
      });
    const take = (more: object) =>
      read([put('z1', 'user', 'Look at @a.png'), image(more)]).turns[0]?.messages[0]?.content;
    const source = { type: 'base64', data: 'aGk=', media_type: 'image/png' };
    expect(take({ renderedRole: 'user' })).toEqual([
      { type: 'image', source },
      { type: 'text', text: 'Look at @a.png' },
    ]);
    expect(take({})).toEqual([{ type: 'text', text: 'Look at @a.png' }]);
  });
});

describe('the names of past turns', () => {
  test('are the same in a fork, and others where what went before is another', () => {
    const { turns } = read(transcriptLines(session));
    const ends = (sessionId: string, from = 0) =>
      captureImported(
        turns.slice(from).map((turn) => ({ ...turn, sessionId })),
        'claude',
        'p',
      ).map(({ turnId }) => turnId);
    expect(ends('s2')).toEqual(ends('s1'));
    expect(new Set([...ends('s1'), ...ends('s1', 1)]).size).toBe(3);
  });

  test('what is said is the same however it was sent', () => {
    const { turns } = read(transcriptLines(session));
    const [past] = captureImported(turns, 'claude', 'p');
    const sent = talk(
      [
        { type: 'text', text: '<system-reminder>today</system-reminder>' },
        { type: 'text', text: 'Which port?', cache_control: { type: 'ephemeral' } },
      ],
      'Port 4711.',
    );
    const other = talk('Which port?', 'Port 4712.');
    const said = turnContentHash('s1', readTurn(past as never));
    expect(turnContentHash('s1', readTurn(sent))).toBe(said);
    expect(turnContentHash('s1', readTurn(other))).not.toBe(said);
    expect(turnContentHash('s2', readTurn(sent))).not.toBe(said);
  });
});
