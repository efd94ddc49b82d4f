import { describe, expect, it } from 'vitest';
import { readStateQuery, type StateKind } from '../../../../memory/text/state-query.ts';

const ASKED: readonly (readonly [StateKind, readonly string[]])[] = [
  [
    'outcome',
    [
      'Where were we?',
      'where are we',
      'Hi! Where did we leave off?',
      'where did we stop yesterday?',
      'So, where do things stand?',
      "let's pick up where we left off",
      'Continue where we left off.',
      "What's the current status?",
      'what is the status of the project?',
      'What were we working on?',
      'What did we do last time?',
      'Catch me up.',
      'Can you tell me where we left off?',
      'Morning. Where were we with this project?',
      'Wo waren wir stehen geblieben?',
      'Wo standen wir?',
      'Wo haben wir gestern aufgehört?',
      'Wie ist der Stand?',
      '¿Dónde estábamos?',
      '¿En qué quedamos?',
      'Où en étions-nous ?',
      "Où est-ce qu'on en était ?",
      '我们上次说到哪了？',
      '做到哪一步了',
      '目前的进度如何？',
      '우리 어디까지 했지?',
      'どこまで進みましたか？',
    ],
  ],
  [
    'open',
    [
      "What's left?",
      'What is left to do?',
      "what's still to do?",
      'What is still open?',
      'What do we still have to do?',
      'What still needs to be done?',
      'what remains to be done?',
      'Which tasks are left? What are the open items?',
      'Any open questions?',
      "What's next?",
      "What's on my todo list?",
      'What should we do next?',
      'Was ist noch offen?',
      'Was ist noch zu tun?',
      'Was müssen wir noch machen?',
      'Was fehlt noch?',
      'Was steht noch an?',
      '¿Qué queda por hacer?',
      '¿Qué falta?',
      "Qu'est-ce qu'il reste à faire ?",
      'Que reste-t-il à faire ?',
      '还有什么没做？',
      '还剩下什么要做？',
      '下一步做什么？',
      '뭐가 남았어?',
      '남은 작업이 뭐야?',
      '何が残っていますか？',
      '残りのタスクは？',
    ],
  ],
  [
    'decided',
    [
      'What did we decide?',
      'What have we decided so far?',
      'What was decided?',
      'Which decisions did we make?',
      'Remind me what we agreed on.',
      'Was haben wir beschlossen?',
      'Was haben wir denn entschieden?',
      'Welche Entscheidungen haben wir getroffen?',
      '¿Qué decidimos?',
      '¿Qué hemos decidido hoy?',
      "Qu'avons-nous décidé ?",
      "Qu'est-ce qu'on a décidé ?",
      '我们决定了什么？',
      '뭐로 결정했지?',
      '何を決めましたか？',
    ],
  ],
];

const OTHERS: readonly string[] = [
  '',
  'where is the config file',
  'Where is the retry implemented?',
  'what is left of the array after the shift?',
  'What is left in it?',
  'what is the left join for?',
  "What's missing from this regular expression?",
  'what is next() in this iterator?',
  'What are the remaining arguments of the function for?',
  'where are we storing the tokens?',
  'Where do we validate the input?',
  'where were the logs written?',
  'Which TODO comments are still open under src?',
  'Which database did we decide on?',
  'What did we decide the timeout should be?',
  'Who decided that?',
  'what decides whether a turn is cut?',
  'What is the status code of a refused request?',
  'git status',
  'Add a next steps section to the README.',
  'open the remaining files and fix them',
  'Why is the file still open?',
  'is the socket still open?',
  'Was ist der linke Join?',
  'Wo ist die Konfiguration?',
  'Was ist das?',
  '¿Dónde está el archivo de configuración?',
  '¿Qué es esto?',
  'Où est le fichier de configuration ?',
  '把待办列表功能加上',
  '할 일 목록 화면을 만들어 줘',
  'やることリストを追加して',
  '配置文件在哪里？',
  '这个函数返回什么？',
  '설정 파일이 어디에 있어?',
  '設定ファイルはどこですか？',
  `Rename the worker. ${'It has to keep its flag and its queue. '.repeat(12)} What is left?`,
];

describe('a question about the state of the work', () => {
  it.each(ASKED.flatMap(([kind, prompts]) => prompts.map((prompt) => [prompt, kind] as const)))(
    '%s',
    (prompt, kind) => {
      expect(readStateQuery(prompt)).toEqual({ wants: [kind], about: [] });
    },
  );

  it('asks for several things at once', () => {
    const all = [
      'Where were we, and what is left?',
      'Wo waren wir, und was ist noch offen?',
      '做到哪了，还有什么没做？',
    ];
    for (const prompt of all) expect(readStateQuery(prompt)).toEqual({ wants: ['outcome', 'open'], about: [] });
    expect(readStateQuery('What did we decide? What is still open?')?.wants).toEqual(['decided', 'open']);
  });

  it('may name a subject', () => {
    expect(readStateQuery('Where were we with the pickup migration?')).toEqual({
      wants: ['outcome'],
      about: ['pickup', 'migration'],
    });
    expect(readStateQuery('What did we decide about retries?')).toEqual({ wants: ['decided'], about: ['retry'] });
    expect(readStateQuery('Was ist bei der Migration noch offen?')).toBeNull();
    expect(readStateQuery("what's left for the rollout")).toEqual({ wants: ['open'], about: ['rollout'] });
  });

  it('may have its subject beside it', () => {
    expect(readStateQuery('how are the release notes laid out, what did we settle on')).toMatchObject({
      wants: ['decided'],
      beside: expect.arrayContaining(['note', 'laid']) as string[],
    });
  });

  it.each(OTHERS)('is not: %s', (prompt) => {
    expect(readStateQuery(prompt)).toBeNull();
  });
});
