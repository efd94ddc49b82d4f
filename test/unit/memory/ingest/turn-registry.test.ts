import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTurnBook, type TurnBook } from '../../../../memory/ingest/turn-registry.ts';
import type { JournalTurn } from '../../../../memory/model/turn.ts';

const ENDS = ['a', 'b', 'c', 'd', 'e', 'f'];
const sessionOf = (end: string): string => (end < 'd' ? 'one' : 'two');

function record(book: TurnBook, end: string, said = end, project = '/p'): boolean {
  const turn: JournalTurn = {
    key: `key of ${said}`,
    end,
    sessionId: sessionOf(end),
    projectDir: '/p',
    model: 'm',
    atMs: end.charCodeAt(0),
    messages: [],
    seq: 0,
    project,
    redacted: false,
  };
  return book.record(turn, { end, atMs: turn.atMs, origin: 'user', user: said, parts: [] });
}

const act = fc.record({ end: fc.constantFrom(...ENDS), what: fc.constantFrom('take', 'release', 'record', 'drop') });

test('whatever is taken, released, recorded and dropped, each turn is taken once until it is released', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      const book = createTurnBook();
      const [taken, recorded] = [new Set<string>(), new Set<string>()];
      for (const { end, what } of acts) {
        if (what === 'take') {
          expect(book.take(end)).toBe(!taken.has(end));
          taken.add(end);
        } else if (what === 'release') {
          book.release(end);
          if (!recorded.has(end)) taken.delete(end);
        } else if (what === 'drop') {
          book.drop([end]);
          recorded.delete(end);
        } else {
          record(book, end);
          taken.add(end);
          recorded.add(end);
        }
      }
      for (const end of ENDS) {
        expect(book.isRecorded(end)).toBe(recorded.has(end));
        expect(book.sessionOf(end)).toBe(recorded.has(end) ? sessionOf(end) : undefined);
        expect(book.take(end)).toBe(!taken.has(end));
      }
    }),
  );
});

test('a turn that comes back in another form keeps its first name, and is counted once', () => {
  const book = createTurnBook();
  expect(record(book, 'a', 'the same')).toBe(true);
  expect(record(book, 'b', 'the same')).toBe(false);
  expect(record(book, 'b', 'the same')).toBe(false);
  expect(record(book, 'c')).toBe(true);
  expect(book.canonical('b')).toBe('a');
  expect(book.forms('b')).toEqual(['a', 'b']);
  expect(book.session('one')?.turns).toBe(2);
  book.drop(['b']);
  expect(book.session('one')?.turns).toBe(2);
  book.drop(['a']);
  expect(book.session('one')?.turns).toBe(1);
  book.drop(['c', 'unknown']);
  expect(book.session('one')).toBeUndefined();
});

test('the same words in another project are a turn of that project', () => {
  const book = createTurnBook();
  expect(record(book, 'a', 'run the tests')).toBe(true);
  expect(record(book, 'd', 'run the tests', '/q')).toBe(true);
  expect(book.session('two')).toMatchObject({ project: '/q', turns: 1 });
  expect(book.forms('d')).toEqual(['d']);
});
