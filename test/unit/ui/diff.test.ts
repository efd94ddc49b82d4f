import fc from 'fast-check';
import { expect, it } from 'vitest';
import { diffRows } from '../../../ui/diff.ts';

const change = { at: 'messages 1 to 4', bytes: 40 };

it('shows lines that went, came and stayed under their place', () => {
  const rows = diffRows([{ ...change, removed: 'which port?\nkept\n', added: 'the port is 7411\nkept\n' }]);
  expect(rows.map(({ kind, text }) => `${kind}: ${text}`)).toEqual([
    'place: messages 1 to 4',
    'removed: which port?',
    'added: the port is 7411',
    'same: kept',
  ]);
});

it('shows only the beginning of what was sent as it came', () => {
  const removed = Array.from({ length: 9 }, (_, line) => `line ${line}`).join('\n');
  const long = diffRows([{ kind: 'kept', at: 'user', removed, added: '', bytes: removed.length }]);
  expect(long.map(({ kind }) => kind)).toEqual(['place', ...Array<string>(7).fill('same')]);
  expect(long.at(-1)?.text).toBe('…');
  const short = diffRows([{ kind: 'kept', at: 'user', removed: 'one line', added: '', bytes: 8 }]);
  expect(short.map(({ text }) => text)).toEqual(['user', 'one line']);
});

it('says what is no longer kept', () => {
  expect(diffRows([{ ...change, removed: '', added: 'a line' }]).map(({ text }) => text)).toEqual([
    'messages 1 to 4',
    '40 bytes whose text is no longer kept',
    'a line',
  ]);
});

it('says how much of what was left out is not shown', () => {
  const removed = 'ä'.repeat(60_000);
  const rows = diffRows([{ ...change, removed, added: 'a line', bytes: 120_007 }]);
  expect(rows.map(({ kind, text }) => `${kind} ${text.slice(0, 40)}`)).toEqual([
    'place messages 1 to 4',
    `removed ${'ä'.repeat(40)}`,
    'removed … and 7 bytes that are not shown here',
    'added a line',
  ]);
});

it('keeps every line of both sides', () => {
  const text = fc.array(fc.stringMatching(/^[a-c ]{0,5}$/), { minLength: 1 }).map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (removed, added) => {
      const rows = diffRows([{ at: '', bytes: removed.length, removed, added }]).slice(1);
      const side = (kind: string): string =>
        rows
          .filter((row) => row.kind === 'same' || row.kind === kind)
          .map((row) => row.text)
          .join('\n');
      fc.pre(removed !== '' && added !== '');
      expect([side('removed'), side('added')]).toEqual([removed.replace(/\n$/, ''), added.replace(/\n$/, '')]);
    }),
  );
});
