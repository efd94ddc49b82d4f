import { describe, expect, test } from 'vitest';
import { createTranscriptReader } from '../../../../memory/ingest/claude-transcript.ts';
import { captureAgent, captureImported, type ImportedTurn } from '../../../../memory/ingest/imported-turn.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';

const at = (second: number): string => new Date(Date.parse('2026-05-04T08:00:00Z') + second * 1_000).toISOString();
const TASK = 'Count the loaves on the shelves.';

const main = (uuid: string, role: string, content: unknown, more: object = {}): string =>
  JSON.stringify({ type: role, uuid, timestamp: at(1), sessionId: 's1', message: { role, content }, ...more });
const start = (id: string, prompt: string) => [{ type: 'tool_use', id, name: 'Agent', input: { prompt } }];
const end = (id: string) => [{ type: 'tool_result', tool_use_id: id, content: 'There are twelve.' }];

/** A turn before, and a turn that starts one subagent. */
function session(result: object = {}): string[] {
  return [
    main('m1', 'user', 'Good morning.'),
    main('m2', 'assistant', [{ type: 'text', text: 'Good morning.' }]),
    main('m3', 'user', 'How many loaves do we have?'),
    main('m4', 'assistant', start('call-1', TASK)),
    main('m5', 'user', end('call-1'), result),
    main('m6', 'assistant', [{ type: 'text', text: 'Twelve.' }]),
  ];
}

function agentLines(prompt: string, more: object = {}, prefix = 'a'): object[] {
  const line = (nth: number, role: string, content: unknown) => ({
    type: role,
    uuid: `${prefix}${nth}`,
    parentUuid: nth === 1 ? null : `${prefix}${nth - 1}`,
    timestamp: at(10 + nth),
    isSidechain: true,
    sessionId: 's1',
    message: { role, content, ...(role === 'assistant' ? { model: 'claude-haiku-4-5', id: `${prefix}m${nth}` } : {}) },
    ...more,
  });
  return [
    line(1, 'user', prompt),
    line(2, 'assistant', [{ type: 'thinking', thinking: 'hm', signature: '' }]),
    line(3, 'assistant', [{ type: 'tool_use', id: `${prefix}t`, name: 'Glob', input: { pattern: '*.bread' } }]),
    line(4, 'user', [{ type: 'tool_result', tool_use_id: `${prefix}t`, content: 'rye.bread' }]),
    line(5, 'assistant', [{ type: 'text', text: 'There are twelve loaves.' }]),
  ];
}

const texts = (lines: readonly object[]): string[] => lines.map((line) => JSON.stringify(line));

function read(lines: readonly string[], files: Readonly<Record<string, readonly object[]>> = {}) {
  const reader = createTranscriptReader('s1', 0);
  for (const line of lines) reader.line(line);
  for (const [id, own] of Object.entries(files)) for (const line of texts(own)) reader.line(line, id);
  return { turns: reader.turns(), skipped: reader.skipped() };
}

/** What its subagents said, turn by turn. */
const saidIn = (turns: readonly ImportedTurn[]): string[][] =>
  turns.map((turn) => {
    const [captured] = captureImported([turn], 'claude', 'p');
    const own = (turn.agents ?? []).map((agent, index) => readTurn(captureAgent(agent, captured as never, index)));
    return own.map(({ user, parts }) => [user, ...parts.map(({ kind, text }) => `${kind} ${text}`)].join('|'));
  });
const WHOLE = `|assistant ${TASK}|tool_use {"pattern":"*.bread"}|tool_result rye.bread|assistant There are twelve loaves.`;

describe('the transcript of a subagent', () => {
  const forms: Record<string, () => ReturnType<typeof read>> = {
    'in a file, named by the result of the call': () =>
      read(session({ toolUseResult: { agentId: 'x1', status: 'completed' } }), { x1: agentLines(TASK) }),
    'in a file, with the prompt of the call': () => read(session(), { x1: agentLines(TASK) }),
    'in the file of the session, with an id': () => read([...session(), ...texts(agentLines(TASK, { agentId: 'x1' }))]),
    'in the file of the session, before ids were written': () => {
      const [first, second, third, fourth, ...rest] = session();
      return read([first, second, third, fourth, ...texts(agentLines(TASK)), ...rest] as string[]);
    },
    'in lines of progress': () => {
      const lines = agentLines('Count them, please.').map((message) => ({
        type: 'progress',
        parentToolUseID: 'call-1',
        data: { type: 'agent_progress', agentId: 'x1', message: { ...message, isSidechain: false } },
      }));
      return read([...session(), ...texts(lines)]);
    },
    'in lines of progress and in a file': () => {
      const lines = agentLines(TASK).map((message) => ({
        type: 'progress',
        parentToolUseID: 'call-1',
        data: { type: 'agent_progress', agentId: 'x1', message },
      }));
      return read([...session(), ...texts(lines)], { x1: agentLines(TASK) });
    },
  };

  test.each(Object.keys(forms))('is once with the turn that started it: %s', (name) => {
    const { turns, skipped } = (forms[name] as () => ReturnType<typeof read>)();
    expect(turns).toHaveLength(2);
    expect(saidIn(turns)).toEqual([
      [],
      [WHOLE.replace(TASK, name.endsWith('progress') ? 'Count them, please.' : TASK)],
    ]);
    expect(turns[1]?.agents?.[0]).toMatchObject({ model: 'claude-haiku-4-5', startMs: Date.parse(at(11)) });
    expect(skipped.side).toBe(0);
  });

  test('that another subagent started is with the same turn', () => {
    const inner = agentLines('Look into the cellar.', {}, 'b');
    const outer = agentLines(TASK);
    outer.splice(3, 0, JSON.parse(main('a9', 'assistant', start('call-2', 'Look into the cellar.'))) as object);
    const { turns } = read(session(), { x2: inner, x1: outer });
    expect(turns.map(({ agents = [] }) => agents.map(({ id }) => id).sort())).toEqual([[], ['x1', 'x2']]);
  });

  test('is counted and left out where no turn started it, or two started each other', () => {
    const result = (agentId: string, uuid: string) =>
      JSON.parse(main(uuid, 'user', end('z'), { toolUseResult: { agentId } })) as object;
    const { turns, skipped } = read(session(), {
      warm: agentLines('Warmup', {}, 'w'),
      one: [...agentLines('One.', {}, 'c'), result('two', 'c9')],
      two: [...agentLines('Two.', {}, 'd'), result('one', 'd9')],
    });
    expect(turns.flatMap(({ agents = [] }) => agents)).toEqual([]);
    expect(skipped.side).toBe(5 + 6 + 6);
  });

  test('of Claude Code 2.1.332 has neither the requests that were sent nor words of the client', () => {
    const [task, ...rest] = agentLines(TASK) as [object, ...object[]];
    const blob = (role: string, text: string) => ({
      type: 'api-request-blob',
      agentId: 'x1',
      hash: text,
      message: { role, content: [{ type: 'text', text }] },
    });
    const hidden = JSON.parse(
      main('h1', 'user', 'Pack it into crate 12.', { isMeta: true, isSidechain: true }),
    ) as object;
    const lines = [task, blob('user', `<system-reminder>\nUse tabs.\n</system-reminder>`), blob('user', TASK), hidden];
    const { turns } = read(session(), { x1: [...lines, blob('system', '# Environment'), ...rest] });
    expect(saidIn(turns)).toEqual([[], [WHOLE]]);
  });

  test('says as the client what its own task reports', () => {
    const report = '<task-notification>\n<result>Nine sails.</result>\n</task-notification>';
    const told = JSON.parse(main('n1', 'user', report, { isSidechain: true })) as object;
    const { turns } = read(session(), { x1: [...agentLines(TASK), told] });
    const [agent] = turns[1]?.agents ?? [];
    const { parts, user } = readTurn(
      captureAgent(agent as never, captureImported(turns, 'claude', 'p')[1] as never, 0),
    );
    expect(user).toBe('');
    expect(parts.at(-1)).toMatchObject({ kind: 'tool_result', origin: 'external', text: report });
  });

  test('is left out where only its steps are known, as older versions log them: its report is a result in the turn', () => {
    const { turns } = read(session(), { x1: agentLines(TASK).slice(0, 4) });
    expect(turns.flatMap(({ agents = [] }) => agents)).toEqual([]);
  });

  test('has the same id in each import, and changes no id of a turn', () => {
    const ids = (turns: readonly ImportedTurn[]) => captureImported(turns, 'claude', 'p').map(({ turnId }) => turnId);
    const { turns } = read(session(), { x1: agentLines(TASK) });
    expect(ids(turns)).toEqual(ids(read(session()).turns));
    const [, captured] = captureImported(turns, 'claude', 'p');
    const grown = read(session(), { x1: [...agentLines(TASK), ...agentLines('More.', {}, 'e')] }).turns;
    const getId = (all: readonly ImportedTurn[]) =>
      captureAgent(all[1]?.agents?.[0] as never, captured as never, 0).turnId;
    expect(getId(grown)).toBe(getId(turns));
  });
});
