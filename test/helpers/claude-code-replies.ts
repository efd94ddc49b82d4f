import {
  type Answer,
  type AnswerBlock,
  type Brain,
  newestPrompt,
  roundOf,
  type ServedRequest,
  structuredBrain,
} from '../mock-anthropic/index.ts';

/** Claude as these tests need it: works through steps with tools, answers questions from what it was sent, archives. */
export function clientBrain(project: string, asides: readonly Aside[] = []): Brain {
  const converse: Brain = async (request) => {
    const said = lastUserMessage(request);
    const aside = asides.find(({ when }) => said.includes(when));
    await aside?.after;
    return aside ? aside.answer(request) : work(request, project, unremembered(newestPrompt(request.body ?? {})));
  };
  return structuredBrain((request, schema) => archive(request, schema), converse);
}

export interface Aside {
  /** Contained in the last user message, which may hold tool results too. */
  readonly when: string;
  readonly answer: (request: ServedRequest) => Answer;
  /** What the answer waits for. */
  readonly after?: Promise<void>;
}

/** Answers with what `pattern` captures anywhere in the body, and has nothing else to go by. */
export function lookUp(when: string, pattern: RegExp): Aside {
  return {
    when,
    answer: ({ bytes }) => {
      const found = pattern.exec(bytes.toString())?.[1];
      return message([{ type: 'text', text: found ? `It is ${found}.` : 'I do not know.' }]);
    },
  };
}

function lastUserMessage({ body }: ServedRequest): string {
  const messages = (body?.['messages'] ?? []) as { role: string }[];
  return unremembered(JSON.stringify(messages.findLast(({ role }) => role === 'user') ?? {}));
}

/** What is recalled of an old prompt is no new one. */
function unremembered(text: string): string {
  return text.replace(/<comet-cc-memory\b.*?<\/comet-cc-memory[^>]*>/gs, '');
}

export const stepFile = (step: number): string => `module-${step}.ts`;

/** Files for `count` steps; how long they are decides how soon a context is worth a cut. */
export function stepFiles(count: number, getLines: (step: number) => number = () => 60): Record<string, string> {
  const steps = Array.from({ length: count }, (_, index) => index + 1);
  const text = (step: number) =>
    Array.from(
      { length: getLines(step) },
      (_, line) => `export const setting${step}x${line} = ${step * 1_000 + line};`,
    );
  return Object.fromEntries(steps.map((step) => [stepFile(step), text(step).join('\n')]));
}

/** "Step N" is one file read, one command, one closing line, each after some thought. */
function work({ body }: ServedRequest, project: string, prompt: string): Answer {
  const step = /\bStep (\d+)/.exec(prompt)?.[1];
  if (step === undefined || !body) return message([...thought(body, prompt), { type: 'text', text: 'Noted.' }]);
  const file = `${project}/${stepFile(Number(step))}`;
  const rounds: AnswerBlock[][] = [
    [
      { type: 'text', text: `I look at ${stepFile(Number(step))} first.` },
      { type: 'tool_use', name: 'Read', input: { file_path: file } },
    ],
    [
      {
        type: 'tool_use',
        name: 'Bash',
        input: { command: `grep -c setting ${stepFile(Number(step))}`, description: 'Count settings' },
      },
    ],
    [{ type: 'text', text: `Step ${step} is done: ${stepFile(Number(step))} holds its settings.` }],
  ];
  const round = Math.min(roundOf(body), rounds.length - 1);
  return message([...thought(body, `${step}.${round}`), ...(rounds[round] ?? [])]);
}

function thought(body: ServedRequest['body'], about: string): AnswerBlock[] {
  const { type } = (body?.['thinking'] ?? {}) as { type?: string };
  const thinks = type === 'adaptive' || type === 'enabled';
  return thinks ? [{ type: 'thinking', thinking: `What ${about.slice(0, 40)} needs.` }] : [];
}

/** Sensor: all one task. Compacter: one node for each turn, made of what the user said in it. */
function archive(request: ServedRequest, schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (JSON.stringify(schema).includes('logic_flow')) {
    return { logic_flow: 'MAINTAIN', load_level: 2, redundancy_detected: false };
  }
  const text = newestPrompt(request.body ?? {});
  const turns = [...text.matchAll(/^\[(t\d+)\] .*\nuser:\n {2}(.*)$/gm)];
  return {
    nodes: turns.map(([, label, said]) => ({
      title: '',
      summary: `archived by the model: ${said}`,
      ...{ outcome: '', decisions: [], open: [], values: [] },
      trigger: `When I need to know about this: ${String(said).slice(0, 80)}`,
      topic_tags: ['settings'],
      importance: 'MED',
      recall_mode: 'active',
      turns: [label],
      facts: [],
      revises: [],
    })),
    skip: [],
    // Claude Code refuses what the schema does not name.
    ...(JSON.stringify(schema).includes('"brief"') && { brief: { active: [], hints: [] } }),
  };
}

function message(blocks: readonly AnswerBlock[]): Answer {
  return { kind: 'message', blocks };
}
