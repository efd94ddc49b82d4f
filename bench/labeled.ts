import { z } from 'zod';
import { carrierTurns } from '../bin/demo/story/carrier.ts';
import { exportTurns } from '../bin/demo/story/export.ts';
import { flakyTurns } from '../bin/demo/story/flaky.ts';
import { labelTurns } from '../bin/demo/story/labels.ts';
import { migrationTurns } from '../bin/demo/story/migration.ts';
import { rolloutTurns } from '../bin/demo/story/rollout.ts';
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
  const parts = [carrierTurns, migrationTurns, flakyTurns, labelTurns, rolloutTurns, exportTurns];
  const first = new Set(parts.map((part) => part[0]));
  return STORY.map(({ turns }, session) =>
    turns.map((turn) => ({ turn: textOf(turn), begins: first.has(turn) || isQuestion(turn) || session > 0 })),
  );
}

function textOf({ prompt, rounds, answer }: StoryTurn): TurnText {
  const parts = rounds.flatMap(({ text = '', tools }) => [
    partOf('assistant', text),
    ...tools.flatMap(({ name, input, result }) => [
      partOf('tool_use', JSON.stringify(input), name),
      partOf('tool_result', result, name),
    ]),
  ]);
  return {
    turnId: prompt,
    atMs: 0,
    origin: 'user',
    user: prompt,
    parts: [...parts, partOf('assistant', answer ?? '')],
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
        const parts = [partOf('assistant', answer)];
        return { begins: at === 0, turn: { turnId: '', atMs: 0, origin: 'user', user, parts } };
      });
    }),
  );
}

function partOf(kind: TurnPart['kind'], text: string, tool = ''): TurnPart {
  return { kind, origin: 'assistant', tool, text };
}
