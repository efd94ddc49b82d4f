import { expect, it } from 'vitest';
import { captureAnsweredTurn, captureTurns } from '../../../../proxy/rewrite/turn-capture.ts';
import { ConversationCache, parseConversation } from '../../../../proxy/wire/conversation.ts';
import { splitTurns, type TurnSpan } from '../../../../proxy/wire/split-turns.ts';

const said = (role: string, content: unknown) => ({ role, content });
const text = (words: string) => [{ type: 'text', text: words }];

function viewOf(messages: readonly unknown[]) {
  const view = parseConversation(Buffer.from(JSON.stringify({ model: 'm', messages })), new ConversationCache());
  if (view === null) throw new Error('not understood');
  return view;
}

/** The newest turn of a conversation, answered. */
function captured(...messages: unknown[]) {
  const view = viewOf(messages);
  const answer = { content: text('So be it.'), stopReason: 'end_turn', usage: {} } as never;
  return captureAnsweredTurn(view, splitTurns(view).at(-1) as TurnSpan, answer, { sessionId: 's', atMs: 1 });
}

it("a turn carries the private words that the user marked in earlier turns, and no other role's", () => {
  const turn = captured(
    said('user', text('We merge. < PRIVATE why>The buyer is Oldenburg.</private>')),
    said('assistant', text('Is it <private>not so</private>?')),
    said('user', 'It is. <private>In May.'),
    said('assistant', text('Noted.')),
    said('user', text('And <private>now?</private>')),
  );
  expect(turn.earlierPrivate?.map((words) => words.trim())).toEqual(['The buyer is Oldenburg.', 'In May.']);
  expect(captured(said('user', 'private class A {}'), said('assistant', 'ok'), said('user', 'b'))).not.toHaveProperty(
    'earlierPrivate',
  );
});

it('each of many turns brings along what those before it have, also those that are not among them', () => {
  const words = ['one', 'two', 'three', 'four'].flatMap((word) => [
    said('user', text(`<private>${word}</private>`)),
    said('assistant', text('Noted.')),
  ]);
  const view = viewOf(words);
  const [, second, , fourth] = splitTurns(view) as [TurnSpan, TurnSpan, TurnSpan, TurnSpan];
  const turns = captureTurns(view, [second, fourth], { sessionId: 's', atMs: 1 });
  expect(turns.map(({ earlierPrivate = [] }) => earlierPrivate.map((word) => word.trim()))).toEqual([
    ['one'],
    ['one', 'two', 'three'],
  ]);
  expect(captureTurns(view, splitTurns(view).slice(0, 1), { sessionId: 's', atMs: 1 })[0]).not.toHaveProperty(
    'earlierPrivate',
  );
});
