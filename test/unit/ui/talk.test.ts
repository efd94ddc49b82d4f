import { expect, it } from 'vitest';
import { messageTexts, talkRows } from '../../../ui/talk.ts';

const message = (seq: number, trimmed_by?: number) => ({
  ...{ seq, turn: 't', at: '', role: 'user', kind: 'text' as const, text: `text ${seq}` },
  ...(trimmed_by === undefined ? {} : { trimmed_by }),
});
const line = (text: string) => ({ text, nodes: [] });

it('puts the lines that stand for trimmed messages before them', () => {
  const messages = [message(0), message(1, 0), message(2, 1), message(3), message(4, 2)];
  const lines = [line('one'), line('two'), line('three')];
  const rows = talkRows({ messages, lines }).map((row) =>
    row.kind === 'stands'
      ? `${row.messages}: ${row.lines.map(({ text }) => text)}`
      : `${row.text} ${row.trimmed_by !== undefined}`,
  );
  expect(rows).toEqual([
    'text 0 false',
    '2: one,two',
    'text 1 true',
    'text 2 true',
    'text 3 false',
    '1: three',
    'text 4 true',
  ]);
});

it('says how much of a message is not shown', () => {
  const messages = [message(0), { ...message(1), left_out: 12 }];
  expect(talkRows({ messages, lines: [] })).toEqual(messages);
});

it('reads the texts of a message', () => {
  expect(messageTexts('plain')).toEqual(['plain']);
  const blocks = [
    { type: 'text', text: 'said' },
    { type: 'tool_use', name: 'Bash', input: { command: 'ls' } },
    { type: 'tool_result', content: [{ type: 'text', text: 'file' }] },
    { type: 'image', source: {} },
    null,
  ];
  expect(messageTexts(blocks)).toEqual(['said', 'Bash {\n  "command": "ls"\n}', 'file']);
});
