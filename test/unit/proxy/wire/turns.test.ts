import { describe, expect, it } from 'vitest';
import { ConversationCache, parseConversation } from '../../../../proxy/wire/conversation.ts';
import { findFreshPrompt, findHeadEnd, splitTurns } from '../../../../proxy/wire/turns.ts';

const text = (role: string, content: unknown) => ({ role, content });
const result = { type: 'tool_result', tool_use_id: 't1', content: '' };
const call = { type: 'tool_use', id: 't1', name: 'Bash', input: {} };

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
    expect(findFreshPrompt(view(text('user', [result, { type: 'text', text: 'and now?' }])))).toBe(-1);
  });

  it('leave the first message and the system messages bound to it in the head', () => {
    expect(findHeadEnd(view(...toolTurn))).toBe(2);
    expect(findHeadEnd(view(text('user', 'a')))).toBe(1);
  });
});
