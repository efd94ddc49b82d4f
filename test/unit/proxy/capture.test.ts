import { expect, it } from 'vitest';
import { answeredTurn } from '../../../proxy/capture.ts';
import { splitTurns, type TurnSpan } from '../../../proxy/wire/turns.ts';
import { ViewCache, viewConversation } from '../../../proxy/wire/view.ts';

const said = (role: string, content: unknown) => ({ role, content });
const text = (words: string) => [{ type: 'text', text: words }];

/** The newest turn of a conversation, answered. */
function captured(...messages: unknown[]) {
  const view = viewConversation(Buffer.from(JSON.stringify({ model: 'm', messages })), new ViewCache());
  if (view === null) throw new Error('not understood');
  const answer = { content: text('So be it.'), stopReason: 'end_turn', usage: {} } as never;
  return answeredTurn(view, splitTurns(view).at(-1) as TurnSpan, answer, { sessionId: 's', atMs: 1 });
}

it('a turn brings along what the user marked as private in those before it, and nobody else', () => {
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
