import { describe, expect, it } from 'vitest';
import { ConversationCache, parseConversation, readPromptText } from '../../../../proxy/wire/conversation.ts';
import { findFreshPrompt, findHeadEnd, findTypedPrompt, splitTurns } from '../../../../proxy/wire/turns.ts';

const text = (role: string, content: unknown) => ({ role, content });
const result = { type: 'tool_result', tool_use_id: 't1', content: '' };
const call = { type: 'tool_use', id: 't1', name: 'Bash', input: {} };

const typedWith = (...texts: string[]) =>
  text('user', [result, ...texts.map((each) => ({ type: 'text', text: each }))]);

function view(...messages: unknown[]) {
  const seen = parseConversation(Buffer.from(JSON.stringify({ model: 'm', messages })), new ConversationCache());
  if (seen === null) throw new Error('not understood');
  return seen;
}

describe('turns', () => {
  const toolTurn = [text('user', 'a'), text('system', 's'), text('assistant', [call]), text('user', [result])];

  it('hold their tool rounds and system messages', () => {
    const turns = splitTurns(view(...toolTurn, text('assistant', 'done'), text('user', 'b'), text('system', 's')));
    expect(turns.map(({ start, end }) => [start, end])).toEqual([
      [0, 5],
      [5, 7],
    ]);
  });

  it('take prompts in a row as one, and a prompt behind a tool result as a new one', () => {
    const spans = splitTurns(view(...toolTurn, text('user', 'stop that'), text('user', 'do this')));
    expect(spans.map(({ start, end }) => [start, end])).toEqual([
      [0, 4],
      [4, 6],
    ]);
  });

  it('are fresh only while their prompt waits for its first answer', () => {
    expect(findFreshPrompt(view(text('user', 'a'), text('system', 's')))).toBe(0);
    expect(findFreshPrompt(view(...toolTurn))).toBe(-1);
    expect(findFreshPrompt(view(text('user', 'a'), text('assistant', 'x')))).toBe(-1);
    expect(findFreshPrompt(view(...toolTurn, text('assistant', [call]), typedWith('and now?')))).toBe(5);
  });

  it('start at a prompt that was sent with tool results, and at nothing that the client puts beside them', () => {
    const getStarts = (...texts: string[]): number[] =>
      splitTurns(view(...toolTurn.slice(0, 3), typedWith(...texts))).map(({ start }) => start);
    const prompts = [
      ['[Request interrupted by user for tool use]', 'No, the other port.'],
      ['Continue, and use the other port.'],
      ['Continue, and use the other port.\n', '[Request interrupted by user for tool use]'],
      ['Base directory for this skill: /s\n\n# Deploy', '[Request interrupted by user]', 'not that one'],
    ];
    prompts.push(['Tool loaded. Now call it.']);
    for (const texts of prompts) expect(getStarts(...texts), texts.at(-1)).toEqual([0, 3]);
    const others = [
      '[Request interrupted by user for tool use]',
      '<system-reminder>\nThe task tools have not been used.\n</system-reminder>',
      '<task-notification>\n<task-id>b1</task-id>\n</task-notification>',
      'PostToolUse:Bash hook additional context: 2 warnings',
      'Base directory for this skill: /s\n\n# Deploy',
      '[Image: source: /tmp/a.png]',
      'Tool loaded.',
      '<system-reminder>\nThe user sent a new message while you were working:\nAlso lint.\n</system-reminder>',
    ];
    for (const other of others) expect(getStarts(other), other).toEqual([0]);
    const skill = { ...call, name: 'Skill' };
    for (const more of [[], ['[Request interrupted by user]']]) {
      const loaded = [text('user', 'a'), text('assistant', [skill]), typedWith('# Deploy\n\nRun the script.', ...more)];
      expect(splitTurns(view(...loaded))).toHaveLength(1);
    }
  });

  it('are typed into where the user adds something to the running turn, in either form', () => {
    const words = 'The user sent a new message while you were working:\nAlso lint.';
    const loop = toolTurn.slice(0, 3);
    const asReminder = view(...loop, typedWith(`<system-reminder>\n${words}\n</system-reminder>`));
    const asNote = view(...loop, text('user', [result]), text('system', words));
    for (const seen of [asReminder, asNote]) {
      expect([findFreshPrompt(seen), findTypedPrompt(seen)]).toEqual([-1, 3]);
      expect(readPromptText(seen, 3)).toBe('Also lint.');
    }
    expect(findTypedPrompt(view(...loop, text('user', [result]), text('system', 'The date has changed.')))).toBe(-1);
  });

  it('leave the first message and the system messages bound to it in the head', () => {
    expect(findHeadEnd(view(...toolTurn))).toBe(2);
    expect(findHeadEnd(view(text('user', 'a')))).toBe(1);
  });
});
