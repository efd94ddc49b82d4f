import { expect, test } from 'vitest';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { turnsIn, type WireMessage } from '../../../helpers/wire-carriers.ts';

const ASKS = [
  'Please fix the flaky test in the checkout module',
  'why does the build fail on Windows only?',
  'Use port 5433 for the staging database from now on.',
  'ok do it',
  'Bitte nimm Postgres statt SQLite, und lass die alten Migrationen stehen.',
  'Kannst du die Übersetzungen prüfen?',
  'usa el puerto 5433 para la base de datos, por favor',
  '¿por qué falla la prueba?',
  '请用 pnpm 而不是 npm，并且更新文档。',
  '포트는 5433으로 하고 테스트도 고쳐줘',
  'テストを直してください。',
  'исправь, пожалуйста, миграцию',
  'no, keep the old behaviour and add a flag instead',
  'let’s go with option 2',
  'Stop hooks are slow here, can we drop them?',
  'The hook feedback is not shown to users. Fix it.',
  'continue',
];
const DETAILS = [
  '',
  ' The file is src/orders/total.ts:42, see also ../shared/lib.',
  '\n```ts\nconst total = items.reduce((sum, { price }) => sum + price, 0);\n```',
  ' What does <system-reminder> in my prompt mean?',
  ' Strip `<task-notification>` and `<private-thing>` tags from the log.',
  '\n\n> Stop hook feedback:\n> lint failed',
  '\n<div class="card">\n  <my-card title="x"></my-card>\n</div>\nis what it renders.',
  '\n1. rename it\n2. move it to `lib/`\n3. run `npm test`',
  '\nError: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)',
  ' It said: "This session is being continued from a previous conversation".',
  '\n| a | b |\n|---|---|\n| 1 | 2 |',
  ' “Output token limit hit.” appears again and again.',
  ' [Image #1]',
  '\nuser: hello\nassistant: hi',
  ' Contact ops@example.org or https://wiki.example.org/a_(b)?q=1#c.',
];
const SURROUNDINGS: readonly ((prompt: string) => readonly string[])[] = [
  (prompt) => [prompt],
  (prompt) => ['<system-reminder>\n# claudeMd\nUse tabs.\n</system-reminder>\n', prompt],
  (prompt) => [prompt, '<system-reminder>\nThe TodoWrite tool has not been used recently.\n</system-reminder>'],
  (prompt) => ['<ide_opened_file>The user opened the file /a.ts in the IDE.</ide_opened_file>', prompt],
  (prompt) => [
    '<local-command-caveat>Caveat: x</local-command-caveat>',
    '<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>opus</command-args>',
    '<local-command-stdout>Set model to opus</local-command-stdout>',
    prompt,
  ],
  (prompt) => ['[Request interrupted by user]', prompt],
];

const prompts = ASKS.flatMap((ask) =>
  DETAILS.flatMap((detail) =>
    SURROUNDINGS.map((around) => ({ prompt: `${ask}${detail}`, texts: around(`${ask}${detail}`) })),
  ),
);

const user = (texts: readonly string[], before: readonly Readonly<Record<string, unknown>>[] = []): WireMessage => ({
  role: 'user',
  content: [...before, ...texts.map((text) => ({ type: 'text', text }))],
});
const answer: WireMessage = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] };

test('of 1,000 prompts as users type them, 99 in 100 are the user’s, word for word', () => {
  expect(prompts.length).toBeGreaterThan(1_000);
  const lost = prompts.filter(({ prompt, texts }) => {
    const [turn] = turnsIn([user(texts), answer], 's', 1).map(readTurn);
    return turn === undefined || turn.origin === 'external' || !turn.user.endsWith(prompt);
  });
  console.info(`prompts that stay the user's: ${prompts.length - lost.length} of ${prompts.length}`);
  expect(lost.map(({ texts }) => texts).slice(0, Math.floor(lost.length - prompts.length / 100) + 1)).toEqual([]);
});

test('what was typed while Claude was busy is the user’s too, also after an interruption', () => {
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a' };
  const call: WireMessage = {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }],
  };
  const start = 'The user sent a new message while you were working:\n';
  const ends = [
    '\n\nIMPORTANT: After completing your current task, you MUST address the user message above. Do not ignore it.',
    '\n\nThis is how Claude Code surfaces messages that the user sends mid-turn.',
  ];
  for (const ask of ASKS) {
    for (const end of ends) {
      const text = `<system-reminder>\n${start}${ask}${end}\n</system-reminder>`;
      const [turn] = turnsIn([user(['Look around.']), call, user([text], [result]), answer], 's', 1).map(readTurn);
      expect(turn?.user).toBe(`Look around.\n\n${ask}`);
    }
    const stopped = user(['[Request interrupted by user for tool use]', ask], [result]);
    const [turn] = turnsIn([user(['Look around.']), call, stopped, answer], 's', 1).map(readTurn);
    expect(turn?.user).toBe(`Look around.\n\n${ask}`);
  }
});
