import { expect, it } from 'vitest';
import { conversationLines } from '../../../../../bin/commands/memory/detail.ts';

const say = (role: 'user' | 'assistant' | 'system', ...texts: readonly string[]) => ({
  ...{ seq: 0, sha256: '', role },
  content: texts.map((text) => ({ type: 'text', text })),
});

it('tells only what was typed as yours, as it was typed', () => {
  const raw = [
    {
      ...say('user'),
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: 'The tool use was rejected.' },
        { type: 'text', text: '[Request interrupted by user for tool use]' },
        {
          type: 'text',
          text: '<command-message>ship</command-message>\n<command-name>/ship</command-name>\n<command-args>carrier</command-args>',
        },
        { type: 'text', text: 'Ship the component carrier. Never skip the smoke tests.' },
      ],
    },
    say('system', 'UserPromptSubmit hook success: the sprint is Sprint 42.'),
    say('assistant', 'The carrier is shipped.'),
    say('user', '<system-reminder>\nA file was changed.\n</system-reminder>'),
    say('system', 'The user sent a new message while you were working:\nCall Mara too.'),
    say('assistant', 'Mara knows.'),
    say('user', '<pasted_content id="e95a">\nA long text.\n</pasted_content id="e95a">\n'),
  ];
  const lines = conversationLines({ raw }, { width: 80, paint: (_, text) => text });
  expect(lines).toEqual([
    ...['', 'You', '/ship carrier', '', 'Claude', 'The carrier is shipped.'],
    ...['', 'You', 'Call Mara too.', '', 'Claude', 'Mara knows.', '', 'You', 'A long text.'],
  ]);
});
