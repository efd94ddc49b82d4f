import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTurnRegistry, type TurnRegistry } from '../../../../memory/ingest/turn-registry.ts';
import type { JournalTurn, TurnPart } from '../../../../memory/model/turn.ts';

const ENDS = ['a', 'b', 'c', 'd', 'e', 'f'];
const getSession = (turnId: string): string => (turnId < 'd' ? 'one' : 'two');

const callWith = (input: string): readonly TurnPart[] =>
  input === '' ? [] : [{ kind: 'tool_use', origin: 'assistant', tool: 'Edit', text: input }];

function record(
  book: TurnRegistry,
  turnId: string,
  said = turnId,
  project = '/p',
  input = '',
  more: Partial<JournalTurn> = {},
): boolean {
  const turn: JournalTurn = {
    key: `key of ${said}`,
    turnId,
    sessionId: getSession(turnId),
    projectDir: '/p',
    model: 'm',
    atMs: turnId.charCodeAt(0),
    messages: [],
    seq: 0,
    project,
    redacted: false,
    ...more,
  };
  return book.record(turn, { turnId, atMs: turn.atMs, origin: 'user', user: said, parts: callWith(input) });
}

const act = fc.record({ turnId: fc.constantFrom(...ENDS), what: fc.constantFrom('take', 'release', 'record', 'drop') });

test('each turn is claimed once until it is released, in any order of calls', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const book = createTurnRegistry();
      const [taken, recorded] = [new Set<string>(), new Set<string>()];
      for (const { turnId, what } of acts) {
        if (what === 'take') {
          expect(book.reserve(turnId)).toBe(!taken.has(turnId));
          taken.add(turnId);
        } else if (what === 'release') {
          book.release(turnId);
          if (!recorded.has(turnId)) taken.delete(turnId);
        } else if (what === 'drop') {
          book.drop([turnId]);
          recorded.delete(turnId);
        } else {
          record(book, turnId);
          taken.add(turnId);
          recorded.add(turnId);
        }
      }
      for (const turnId of ENDS) {
        expect(book.isRecorded(turnId)).toBe(recorded.has(turnId));
        expect(book.getSession(turnId)).toBe(recorded.has(turnId) ? getSession(turnId) : undefined);
        expect(book.reserve(turnId)).toBe(!taken.has(turnId));
      }
    }),
  );
});

test('a turn that comes back in another form keeps its first name, and is counted once', () => {
  const book = createTurnRegistry();
  expect(record(book, 'a', 'the same')).toBe(true);
  expect(record(book, 'b', 'the same')).toBe(false);
  expect(record(book, 'b', 'the same')).toBe(false);
  expect(record(book, 'c')).toBe(true);
  expect(book.canonicalId('b')).toBe('a');
  expect(book.aliases('b')).toEqual(['a', 'b']);
  expect(book.session('one')?.turns).toBe(2);
  book.drop(['b']);
  expect(book.session('one')?.turns).toBe(2);
  book.drop(['a']);
  expect(book.session('one')?.turns).toBe(1);
  book.drop(['c', 'unknown']);
  expect(book.session('one')).toBeUndefined();
});

test('a turn behind one that was not kept is the same in another form of the history, and so are those after it', () => {
  const book = createTurnRegistry();
  const said = (turnId: string, words: string, before: string): boolean =>
    record(book, turnId, words, '/p', '', { key: `key of ${turnId}`, before, sessionId: 'one' });
  expect([said('a', 'start', ''), said('b', 'go on', 'paused'), said('c', 'stop', 'b')]).toEqual([true, true, true]);
  expect([said('d', 'start', ''), said('e', 'go on', 'paused too'), said('f', 'stop', 'e')]).toEqual([
    false,
    false,
    false,
  ]);
  expect(book.canonicalId('f')).toBe('c');
});

test('a conversation whose first words a newer client says in another way is the same one, turn by turn', () => {
  const book = createTurnRegistry();
  const said = (turnId: string, words: string, before: string): boolean =>
    record(book, turnId, words, '/p', '', { key: `key of ${turnId}`, before, sessionId: 'one' });
  expect(said('a', 'go on', '')).toBe(true);
  expect(said('b', 'go on', 'a')).toBe(true);
  expect(said('c', 'stop', 'b')).toBe(true);
  expect(said('d', 'go on', '')).toBe(false);
  expect(said('e', 'go on', 'd')).toBe(false);
  expect(said('f', 'go on', 'e')).toBe(true);
  expect(['d', 'e', 'f'].map(book.canonicalId)).toEqual(['a', 'b', 'f']);
  expect(book.session('one')?.turns).toBe(4);
});

test('a turn that a summary of all before it stands in front of is the turn that it was', () => {
  const book = createTurnRegistry();
  const summary = 'This session is being continued from a previous conversation.';
  const said = (turnId: string, words: string, before: string, continued = ''): boolean => {
    const turn = { key: `key of ${turnId}`, turnId, before, sessionId: 'one', projectDir: '/p', model: 'm', atMs: 1 };
    const parts =
      continued === '' ? [] : [{ kind: 'assistant' as const, origin: 'external' as const, tool: '', text: continued }];
    const text = { turnId, atMs: 1, origin: 'user' as const, user: words, parts };
    return book.record({ ...turn, messages: [], project: '/p' }, text);
  };
  expect([said('a', 'go on', ''), said('b', 'go on', 'a'), said('c', 'stop', 'b')]).toEqual([true, true, true]);
  expect(said('d', '', '', summary)).toBe(true);
  expect([said('e', 'go on', '', summary), said('f', 'stop', 'e')]).toEqual([false, false]);
  expect(said('g', 'go on', 'f')).toBe(true);
  expect(['d', 'e', 'f', 'g'].map(book.canonicalId)).toEqual(['d', 'b', 'c', 'g']);
});

test('turns are known again behind a summary that keeps only the end of the turn before them', () => {
  const book = createTurnRegistry();
  const said = (turnId: string, words: string, before: string, continued = ''): boolean => {
    const parts =
      continued === '' ? [] : [{ kind: 'assistant' as const, origin: 'external' as const, tool: '', text: continued }];
    const turn = { key: `key of ${turnId}`, turnId, before, sessionId: 'one', projectDir: '/p', model: 'm', atMs: 1 };
    return book.record(
      { ...turn, messages: [], project: '/p' },
      { turnId, atMs: 1, origin: 'user', user: words, parts },
    );
  };
  expect([said('a', 'a', ''), said('b', 'b', 'a'), said('c', 'c', 'b'), said('d', 'd', 'c')]).not.toContain(false);
  expect(said('end of a', '', '', 'This session is being continued from a previous conversation.')).toBe(true);
  expect(said('reminder', '', 'end of a')).toBe(true);
  expect([said('b2', 'b', 'reminder'), said('c2', 'c', 'b2'), said('d2', 'd', 'c2')]).toEqual([false, false, false]);
  expect([said('e', 'e', 'd2'), said('d3', 'd', 'e')]).toEqual([true, true]);
  expect(['b2', 'c2', 'd2', 'd3'].map(book.canonicalId)).toEqual(['b', 'c', 'd', 'd3']);
});

test('the same words in another project are a turn of that project', () => {
  const book = createTurnRegistry();
  expect(record(book, 'a', 'run the tests')).toBe(true);
  expect(record(book, 'd', 'run the tests', '/q')).toBe(true);
  expect(book.session('two')).toMatchObject({ project: '/q', turns: 1 });
  expect(book.aliases('d')).toEqual(['d']);
});

test('two branches that differ only in what a tool was given are two turns', () => {
  const book = createTurnRegistry();
  expect(record(book, 'a', 'fix it', '/p', '{"file":"a.ts","lines":[1,{"x":1,"y":2}]}')).toBe(true);
  expect(record(book, 'b', 'fix it', '/p', '{"file":"b.ts","lines":[1,{"x":1,"y":2}]}')).toBe(true);
  expect(record(book, 'c', 'fix it', '/p', '{"lines":[1,{"y":2,"x":1}],"file":"a.ts"}')).toBe(false);
  expect(book.aliases('c')).toEqual(['a', 'c']);
  expect(book.session('one')?.turns).toBe(2);
});

test('a turn that the user went back behind is abandoned, with those after it, until one of them is continued', () => {
  const book = createTurnRegistry();
  const follow = (before: string, ...turnIds: string[]): void => {
    for (const turnId of turnIds) record(book, turnId, turnId, '/p', '', { before });
  };
  const abandoned = (): string[] => ENDS.filter((turnId) => book.areAbandoned([turnId]));
  follow('', 'a');
  follow('a', 'b');
  follow('b', 'c');
  // A fork, which is another session.
  follow('a', 'd');
  expect(abandoned()).toEqual([]);
  record(book, 'b2', 'another b', '/p', '', { before: 'a' });
  expect(abandoned()).toEqual(['b', 'c']);
  expect([book.areAbandoned(['a', 'b']), book.areAbandoned(['b', 'c']), book.areAbandoned([])]).toEqual([
    ...[false, true, false],
  ]);
  record(book, 'c2', 'another terminal', '/p', '', { before: 'b' });
  expect(abandoned()).toEqual(['c']);
  // It may be a summary in a form that is not known.
  record(book, 'a2', 'another a', '/p', '', { before: '' });
  expect(abandoned()).toEqual(['c']);
});

test('a rewind to the first prompt is recognized in an import', () => {
  const book = createTurnRegistry();
  for (const [turnId, before] of Object.entries({ a: '', b: 'a', c: '' }))
    record(book, turnId, turnId, '/p', 'ls', { before, sessionId: 'one', imported: 'claude' });
  expect(ENDS.filter((turnId) => book.areAbandoned([turnId]))).toEqual(['a', 'b']);
});

test('what a summary stands in front of abandons nothing, nor does a part, or the same turn in another form', () => {
  const book = createTurnRegistry();
  record(book, 'a', 'a', '/p', '', { before: '' });
  record(book, 'b', 'b', '/p', '', { before: 'a' });
  record(book, 'b2', 'b', '/p', '', { before: 'a' });
  record(book, 'b3', 'b', '/p', 'ls', { before: 'a', part: { index: 0, after: null } });
  const turn = { key: 'key of c', turnId: 'c', before: 'a', sessionId: 'one', projectDir: '/p', model: 'm', atMs: 1 };
  const text = 'This session is being continued from a previous conversation.';
  const parts = [{ kind: 'assistant' as const, origin: 'external' as const, tool: '', text }];
  book.record({ ...turn, messages: [], project: '/p' }, { turnId: 'c', atMs: 1, origin: 'user', user: 'c', parts });
  // The prompt before which the summary begins is sent again, and answered with the same words.
  record(book, 'e', 'e', '/p', '', { before: 'b', sessionId: 'one' });
  const again = { ...turn, turnId: 'b4', key: 'key of b4', messages: [], project: '/p' };
  book.record(again, { turnId: 'b4', atMs: 1, origin: 'user', user: 'b', parts });
  expect(book.canonicalId('b4')).toBe('b');
  record(book, 'f', 'f', '/p', '', { before: 'b4', sessionId: 'one' });
  expect(['a', 'b', 'b2', 'b3', 'c', 'e', 'f'].filter((turnId) => book.areAbandoned([turnId]))).toEqual([]);
});

test('a turn behind a summary can be abandoned, the first one too', () => {
  const book = createTurnRegistry();
  const text = 'This session is being continued from a previous conversation.';
  const parts = [{ kind: 'assistant' as const, origin: 'external' as const, tool: '', text }];
  const end = { key: 'key', turnId: 'end', before: '', sessionId: 'one', projectDir: '/p', model: 'm', atMs: 1 };
  const summary = { turnId: 'end', atMs: 1, origin: 'user' as const, user: '', parts };
  book.record({ ...end, messages: [], project: '/p' }, summary);
  for (const [turnId, before] of Object.entries({ a: 'end', b: 'a', c: 'a', f: 'end' })) {
    record(book, turnId, turnId, '/p', '', { before, sessionId: 'one' });
    if (turnId === 'c') expect(ENDS.filter((id) => book.areAbandoned([id]))).toEqual(['b']);
  }
  expect(ENDS.filter((id) => book.areAbandoned([id]))).toEqual(['a', 'b', 'c']);
});

test('a session is not named by a turn that was dropped', () => {
  const book = createTurnRegistry();
  record(book, 'a', 'Ottokar moves out');
  record(book, 'b', 'Order the tiles');
  book.drop(['a']);
  expect(book.session('one')).toMatchObject({ title: '', turns: 1 });
  record(book, 'c', 'Call the tiler');
  book.drop(['b']);
  expect(book.session('one')).toMatchObject({ title: 'Call the tiler', turns: 1 });
});

test('only another form of a known turn is recognized', () => {
  const book = createTurnRegistry();
  const saying = (turnId: string, user: string) => {
    const turn = {
      key: `key of ${turnId}`,
      turnId,
      before: '',
      sessionId: 'one',
      projectDir: '/p',
      model: 'm',
      atMs: 1,
    };
    const text = { turnId, atMs: 1, origin: 'user' as const, user, parts: [] };
    return [{ ...turn, messages: [], project: '/p' }, text] as const;
  };
  expect(book.recognize(...saying('a', 'go on'))).toBe(false);
  expect([book.isRecorded('a'), book.sessions().size]).toEqual([false, 0]);
  expect(book.record(...saying('a', 'go on'))).toBe(true);
  expect(book.recognize(...saying('a', 'go on'))).toBe(false);
  expect(book.recognize(...saying('b', 'stop'))).toBe(false);
  expect(book.recognize(...saying('c', 'go on'))).toBe(true);
  expect([book.canonicalId('c'), book.isRecorded('c'), book.session('one')?.turns]).toEqual(['a', true, 1]);
  expect(book.record(...saying('c', 'go on'))).toBe(false);
});

test('a session that begins with commands of the client is named by its first prompt', () => {
  const book = createTurnRegistry();
  record(book, 'a', '/clear\n\n/export talk.txt\n\nPoint the config to the sandbox.');
  record(book, 'd', '/clear');
  expect(book.session('one')?.title).toBe('Point the config to the sandbox.');
  expect(book.session('two')?.title).toBe('');
});
