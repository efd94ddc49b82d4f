import { describe, expect, test } from 'vitest';
import { createTranscriptReader } from '../../../../memory/ingest/claude-transcript.ts';
import { captureImported, isComplete, turnContentHash } from '../../../../memory/ingest/imported-turn.ts';
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

  test('is not over while a call is open', () => {
    const open = transcriptLines(session).slice(0, -2);
    expect(isComplete(read(open).turns[1] as never)).toBe(false);
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
