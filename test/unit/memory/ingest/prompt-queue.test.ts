import { describe, expect, test } from 'vitest';
import { createTranscriptReader } from '../../../../memory/ingest/claude-transcript.ts';
import { captureImported } from '../../../../memory/ingest/imported-turn.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';

const T0 = Date.parse('2026-05-04T08:00:00Z');

/** Lines of one session, a second apart. */
function session() {
  const lines: string[] = [];
  let parentUuid: string | null = null;
  const put = (line: object): void => {
    const timestamp = new Date(T0 + lines.length * 1_000).toISOString();
    lines.push(JSON.stringify({ sessionId: 's1', timestamp, ...line }));
  };
  const message = (type: string, content: unknown): void => {
    const uuid = `u${lines.length}`;
    put({ type, uuid, parentUuid, cwd: '/home/dev/bakery', message: { role: type, content } });
    parentUuid = uuid;
  };
  const own = {
    lines,
    put,
    user: (content: unknown) => message('user', content),
    call: () => message('assistant', [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make' } }]),
    result: () => message('user', [{ type: 'tool_result', tool_use_id: 't1', content: 'built' }]),
    answer: (text: string) => message('assistant', [{ type: 'text', text }]),
    queue: (operation: string, more: object = {}) => put({ type: 'queue-operation', operation, ...more }),
    attach: (prompt: unknown, more: object = {}) => {
      const attachment = { type: 'queued_command', prompt, commandMode: 'prompt', ...more };
      put({ type: 'attachment', uuid: `u${lines.length}`, parentUuid, attachment });
    },
    /** What the user said, turn by turn. */
    prompts: () => getTurns(lines).map((turn) => readTurn(turn).user),
  };
  own.user('Bake the rye loaf.');
  own.call();
  return own;
}

function getTurns(lines: readonly string[]) {
  const reader = createTranscriptReader('s1', T0);
  for (const line of lines) reader.line(line);
  return captureImported(reader.turns(), 'claude', 'bakery');
}

function finish(own: ReturnType<typeof session>): void {
  own.result();
  own.answer('The rye loaf is in the oven.');
}

describe('a prompt typed while Claude was busy', () => {
  const text = 'Use the small oven.';
  const joined: Record<string, (own: ReturnType<typeof session>) => void> = {
    'a removal without a reason': (own) => {
      own.queue('enqueue', { content: text });
      own.queue('remove');
    },
    'a removal with text and reason': (own) => {
      own.queue('enqueue', { content: text });
      own.queue('remove', { content: text, reason: 'absorbed_mid_turn' });
    },
    'an attachment alone': (own) => own.attach(text),
    'an attachment after the removal': (own) => {
      own.queue('enqueue', { content: text });
      own.queue('remove', { content: text, reason: 'absorbed_mid_turn' });
      own.attach(text, { origin: { kind: 'human' }, source_uuid: 'x' });
    },
    'an attachment before the removal': (own) => {
      own.queue('enqueue', { content: text });
      own.attach(text);
      own.queue('remove');
    },
    'an attachment after a dequeue': (own) => {
      own.queue('enqueue', { content: text });
      own.queue('dequeue');
      own.attach(text);
    },
    'nothing else, because the session ended': (own) => own.queue('enqueue', { content: text }),
    'a dequeue whose user message is missing': (own) => {
      own.queue('enqueue', { content: text });
      own.queue('dequeue');
    },
  };

  test.each(Object.keys(joined))('is a turn once, behind the running one: %s', (name) => {
    const own = session();
    joined[name]?.(own);
    finish(own);
    own.user('What next?');
    expect(own.prompts()).toEqual(['Bake the rye loaf.', text, 'What next?']);
  });

  test('is the user message that follows, where there is one', () => {
    for (const withReason of [false, true]) {
      const own = session();
      own.queue('enqueue', { content: text });
      if (withReason) own.queue('remove');
      finish(own);
      if (!withReason) own.queue('dequeue');
      own.user([{ type: 'text', text }]);
      own.answer('It is the small one.');
      expect(own.prompts()).toEqual(['Bake the rye loaf.', text]);
    }
  });

  test('is the user message that left the queue, though its text was completed there', () => {
    const own = session();
    own.queue('enqueue', { content: '[Pasted text #1] shorten this' });
    own.queue('enqueue', { content: 'and translate it' });
    finish(own);
    own.queue('dequeue');
    own.queue('dequeue');
    own.user('Flour, water, salt: shorten this');
    own.user('and translate it');
    own.answer('Mehl.');
    expect(own.prompts()).toEqual(['Bake the rye loaf.', 'Flour, water, salt: shorten this\n\nand translate it']);
  });

  test('is external where a schedule queued it', () => {
    const own = session();
    finish(own);
    own.queue('enqueue', { content: 'Look into the oven.' });
    own.queue('dequeue');
    const message = { role: 'user', content: 'Look into the oven.' };
    own.put({ type: 'user', uuid: 'w1', isMeta: true, wakeupSource: 'loop_wakeup', turnOrigin: 'scheduled', message });
    own.answer('Done.');
    expect(own.prompts()).toEqual(['Bake the rye loaf.', '']);
  });

  test('keeps order and number, equal ones too', () => {
    const own = session();
    for (const content of ['go on', 'salt it', 'go on']) own.queue('enqueue', { content });
    for (let left = 3; left > 0; left -= 1) own.queue('remove');
    finish(own);
    expect(own.prompts()).toEqual(['Bake the rye loaf.', 'go on', 'salt it', 'go on']);
    const turns = getTurns(own.lines);
    expect(new Set(turns.map(({ turnId }) => turnId)).size).toBe(4);
    expect(getTurns([...own.lines, ...own.lines])).toEqual(turns);
  });

  test('is typed again later, when Claude was idle: two prompts', () => {
    const own = session();
    own.queue('enqueue', { content: 'go on' });
    own.queue('remove');
    finish(own);
    own.user('And the wheat?');
    own.answer('Rising.');
    own.user('go on');
    own.answer('Done.');
    expect(own.prompts()).toEqual(['Bake the rye loaf.', 'go on', 'And the wheat?', 'go on']);
  });

  test('is left out where the user took it back', () => {
    const own = session();
    own.queue('enqueue', { content: 'burn it' });
    own.queue('popAll', { content: 'burn it' });
    own.queue('enqueue', { content: 'stop that' });
    own.queue('remove', { content: 'stop that', reason: 'cancelled' });
    finish(own);
    expect(own.prompts()).toEqual(['Bake the rye loaf.']);
  });

  test('keeps its image, and a shell command its mark', () => {
    const own = session();
    own.queue('enqueue', { content: '[Image #1] like this' });
    own.attach([
      { type: 'text', text: 'like this' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } },
    ]);
    own.queue('remove', { content: '[Image #1] like this', reason: 'absorbed_mid_turn' });
    own.attach('ls crumbs', { commandMode: 'bash' });
    finish(own);
    expect(own.prompts()).toEqual(['Bake the rye loaf.', 'like this\n\n[image png]', '! ls crumbs']);
  });

  test('does not change the ids of the turns around it', () => {
    const plain = session();
    finish(plain);
    plain.user('What next?');
    const own = session();
    own.put({ type: 'other' });
    finish(own);
    own.user('What next?');
    const before = getTurns(own.lines).map(({ turnId }) => turnId);
    const [first = '', second = '', ...rest] = own.lines;
    const put = JSON.stringify({ type: 'attachment', attachment: { type: 'queued_command', prompt: 'salt it' } });
    const after = getTurns([first, second, put, ...rest]).map(({ turnId }) => turnId);
    expect([after[0], after[2]]).toEqual(before);
  });
});

describe('what else travels in the queue', () => {
  const note = '<task-notification>\n<task-id>b1</task-id>\n<summary>The build ended</summary>\n</task-notification>';

  test('is no prompt', () => {
    const own = session();
    own.queue('enqueue', { content: note });
    own.queue('remove', { content: note, reason: 'absorbed_mid_turn' });
    own.attach(note, { commandMode: 'task-notification', origin: { kind: 'task-notification' } });
    own.attach('salt everything', { origin: { kind: 'peer', from: 'other' } });
    own.attach('a hint', { isMeta: true });
    own.queue('enqueue', { content: '<teammate-message teammate_id="x">salt</teammate-message>' });
    finish(own);
    expect(own.prompts()).toEqual(['Bake the rye loaf.']);
  });

  test('is not said by the user in a user message either, and may come from anywhere', () => {
    const own = session();
    finish(own);
    own.queue('enqueue', { content: note });
    own.queue('dequeue');
    own.user(note);
    own.answer('The build is over.');
    const turns = getTurns(own.lines).map((turn) => readTurn(turn));
    expect(turns.map(({ user }) => user)).toEqual(['Bake the rye loaf.', '']);
    expect(turns[1]?.parts.map(({ kind, origin }) => [kind, origin])).toEqual([
      ['tool_result', 'external'],
      ['assistant', 'external'],
    ]);
  });

  test('does not take the place of a prompt: a later line that is damaged, unknown or empty', () => {
    const own = session();
    for (const line of [{ operation: 'enqueue' }, { operation: 'dequeue' }, { operation: 7 }, {}])
      own.put({ type: 'queue-operation', ...line });
    for (const attachment of [null, 'x', { type: 'queued_command' }, { type: 'queued_command', prompt: 5 }])
      own.put({ type: 'attachment', attachment });
    own.queue('enqueue', { content: 'salt it' });
    finish(own);
    expect(own.prompts()).toEqual(['Bake the rye loaf.', 'salt it']);
  });
});
