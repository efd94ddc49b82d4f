import { describe, expect, test } from 'vitest';
import { readTurnState } from '../../../../memory/compaction/turn-state.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { talk } from '../../../helpers/turns.ts';

const say = (prompt: string, answer: string) => readTurn(talk(prompt, answer));

describe('the state that a turn leaves behind', () => {
  test('says what was asked and how it ended, without steps and offers', () => {
    const state = readTurnState(
      say(
        'Can you please find out why the nightly export of the billing service fails?',
        'Let me look at the logs first.\n\nThe export fails because `report.csv` is opened twice.\n\nI closed the first handle in src/export.ts. All 14 tests pass.\n\nWant me to open a pull request?',
      ),
    );
    expect(state.title).toBe('find out why the nightly export of the billing service fails?');
    expect(state.outcome).toBe(
      'The export fails because `report.csv` is opened twice. I closed the first handle in src/export.ts. All 14 tests pass.',
    );
    expect(state).toMatchObject({ skip: null, decisions: [], open: [] });
    expect(state.values).toContain('src/export.ts');
  });

  test('binds a short reply to the question that it answers', () => {
    const before = say(
      'Which queue?',
      'pg-boss needs no new service, SQS scales further.\n\nShould we take pg-boss or SQS?',
    );
    const state = readTurnState(say('ok, pg-boss it is', 'Installed pg-boss 9.0.3.'), before);
    expect(state.decisions).toEqual([
      {
        text: '“ok, pg-boss it is” (rejected: SQS) to “pg-boss needs no new service, SQS scales further. Should we take pg-boss or SQS?”',
        by: 'user',
        origin: 'user',
        turn: expect.any(String),
      },
    ]);
  });

  test('names to-dos with person and date, and questions that wait', () => {
    const state = readTurnState(
      say(
        'Anna has to rotate the mail key by Friday. Add the retry now.',
        'The retry is in.\n\n## Next steps\n- Add a metric for dropped mails\n\nWhich timeout should the retry use?',
      ),
    );
    expect(state.open.map(({ text }) => text)).toEqual([
      'Anna has to rotate the mail key by Friday (2027-01-22).',
      'Add a metric for dropped mails',
      'Which timeout should the retry use?',
    ]);
  });

  test.each([
    ['thanks!', 'You are welcome.', 'greeting'],
    ['heartbeat', 'HEARTBEAT_OK', 'notification'],
  ])('makes no memory of %s', (prompt, answer, reason) => {
    expect(readTurnState(say(prompt, answer)).skip).toBe(reason);
  });
});
