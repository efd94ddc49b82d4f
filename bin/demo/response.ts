import { isRecord } from '../../common/text.ts';
import {
  type Answer,
  type AnswerBlock,
  type Brain,
  blocksOf,
  type Json,
  newestPrompt,
  roundOf,
} from '../../test/mock-anthropic/index.ts';
import { isQuestion, type Question, type StoryRound, type StorySession } from './story.ts';

export type Channel = 'recalled' | 'preamble' | 'system block' | 'conversation';

/** The line of a request that holds an answer. */
export interface RecalledLine {
  readonly channel: Channel;
  readonly line: string;
  /** Of the memory line; null where the answer stood in the conversation itself. */
  readonly nodeId: string | null;
}

export const UNKNOWN = 'I do not know.';

/** The model's side: plays the story, and answers a question from the request that reached it or not at all. */
export function storyBrain(
  story: readonly StorySession[],
  onFound: (question: Question, line: RecalledLine | null) => void,
): Brain {
  const turns = story.flatMap((session) => session.turns);
  return ({ body }) => {
    const prompt = body === null ? '' : newestPrompt(body);
    const turn = turns.find((entry) => entry.prompt === prompt);
    if (body === null || turn === undefined) return textAnswer(UNKNOWN);
    if (isQuestion(turn)) {
      const line = findAnswer(body, turn);
      onFound(turn, line);
      return textAnswer(line === null ? UNKNOWN : quoted(line.line, turn));
    }
    const round = turn.rounds[roundOf(body)];
    const closing: AnswerBlock[] = [...thought(turn.thinking), { type: 'text', text: turn.answer ?? UNKNOWN }];
    return { kind: 'message', blocks: round === undefined ? closing : calling(round) };
  };
}

/** Memory first, the nearest to the prompt before all; the conversation itself only where memory is silent. */
export function findAnswer(body: Json, question: Question): RecalledLine | null {
  const lines = getLines(body, question.prompt).filter(({ line }) => question.right.test(line));
  for (const channel of ['recalled', 'preamble', 'system block', 'conversation'] as const) {
    const best = lines.filter((entry) => entry.channel === channel).at(-1);
    if (best !== undefined)
      return { ...best, nodeId: channel === 'conversation' ? null : (/\[([\w-]+)\]/.exec(best.line)?.[1] ?? null) };
  }
  return null;
}

type Placed = Omit<RecalledLine, 'nodeId'>;

const OPEN = '<comet-cc-memory';
const OURS = 'comet-cc';

function getLines(body: Json, prompt: string): Placed[] {
  const messages = Array.isArray(body.messages) ? body.messages.filter(isRecord) : [];
  const system = blocksOf(body.system).flatMap((block) => {
    const text = String(block.text ?? '');
    return text.startsWith(OURS) ? placed('system block', text) : [];
  });
  const lastPrompt = messages.findLastIndex((message) =>
    blocksOf(message.content).some((block) => block.text === prompt),
  );
  return [...system, ...messages.flatMap((message, index) => messageLines(message, index >= lastPrompt, prompt))];
}

function messageLines(message: Json, newest: boolean, prompt: string): Placed[] {
  return blocksOf(message.content).flatMap((block, at) => {
    if (block.text === prompt) return [];
    const text = typeof block.text === 'string' ? block.text : typeof block.content === 'string' ? block.content : '';
    if (message.role === 'system' && text.startsWith(OURS)) return placed('recalled', text);
    // The preamble leads its message, what is recalled for a prompt stands behind it.
    if (text.startsWith(OPEN)) return placed(at === 0 || !newest ? 'preamble' : 'recalled', text);
    return placed('conversation', text);
  });
}

function placed(channel: Channel, text: string): Placed[] {
  return text.split('\n').map((line) => ({ channel, line: line.trim() }));
}

/** The words that answer, without the rest of their line. */
function quoted(line: string, question: Question): string {
  const pieces = line.split(/; | — |(?<=[.!?]) /).filter((piece) => question.right.test(piece));
  return (
    pieces
      .at(0)
      ?.replace(/^- \[.*?\):? /, '')
      .replace(/^user says: /, 'You said: ')
      .replace(/^answered: /, '') ?? line
  );
}

const textAnswer = (text: string): Answer => ({ kind: 'message', blocks: [{ type: 'text', text }] });

function calling({ thinking, text, tools }: StoryRound): AnswerBlock[] {
  return [
    ...thought(thinking),
    ...(text === undefined ? [] : [{ type: 'text' as const, text }]),
    ...tools.map(({ name, input }) => ({ type: 'tool_use' as const, name, input })),
  ];
}

function thought(thinking: string | undefined): AnswerBlock[] {
  return thinking === undefined ? [] : [{ type: 'thinking', thinking }];
}
