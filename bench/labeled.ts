import { z } from 'zod';
import { isQuestion, STORY, type StoryTurn } from '../bin/demo/story.ts';
import type { TurnPart, TurnText } from '../memory/model/turn.ts';

/** A turn, and whether another topic is known to begin with it. */
export interface Labelled {
  readonly turn: TurnText;
  readonly begins: boolean;
}

const Dialogues = z.array(
  z.looseObject({ sessions: z.array(z.looseObject({ turns: z.array(z.looseObject({ text: z.string() })) })) }),
);

/** The demo's story: each part and each late question begins a topic. */
export function storyConversations(): Labelled[][] {
  return STORY.map(({ turns }) =>
    turns.map((turn, at) => ({ turn: getText(turn), begins: isQuestion(turn) || turn.topic !== turns[at - 1]?.topic })),
  );
}

function getText({ prompt, rounds, answer }: StoryTurn): TurnText {
  const parts = rounds.flatMap(({ text = '', tools }) => [
    getPart('assistant', text),
    ...tools.flatMap(({ name, input, result }) => [
      getPart('tool_use', JSON.stringify(input), name),
      getPart('tool_result', result, name),
    ]),
  ]);
  return {
    turnId: prompt,
    atMs: 0,
    origin: 'user',
    user: prompt,
    parts: [...parts, getPart('assistant', answer ?? '')],
  };
}

/** Dialogues in LoCoMo's shape, as JSON: each session begins a topic, two utterances make a turn. */
export function dialogues(json: string): Labelled[][] {
  return Dialogues.parse(JSON.parse(json)).map(({ sessions }) =>
    sessions.flatMap(({ turns }) => {
      const pairs = turns.flatMap((turn, at) =>
        at % 2 === 0 ? [[turn.text, turns[at + 1]?.text ?? ''] as const] : [],
      );
      return pairs.map(([user, answer], at): Labelled => {
        const parts = [getPart('assistant', answer)];
        return { begins: at === 0, turn: { turnId: '', atMs: 0, origin: 'user', user, parts } };
      });
    }),
  );
}

function getPart(kind: TurnPart['kind'], text: string, tool = ''): TurnPart {
  return { kind, origin: 'assistant', tool, text };
}
