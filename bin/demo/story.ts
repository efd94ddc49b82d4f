import { carrierTurns } from './story/carrier.ts';
import { exportTurns } from './story/export.ts';
import { flakyTurns } from './story/flaky.ts';
import { labelTurns } from './story/labels.ts';
import { migrationTurns } from './story/migration.ts';
import { rolloutTurns } from './story/rollout.ts';
import type { Question, StoryTurn } from './story/turn.ts';

export { PROJECT_DIR, type Question, type StoryRound, type StoryTurn } from './story/turn.ts';

export interface StorySession {
  readonly id: string;
  /** Since the request before it; longer than any cache lives. */
  readonly pauseMs: number;
  readonly turns: readonly (StoryTurn | Question)[];
}

const NIGHT_MS = 14 * 3_600_000;

const PORT: Question = {
  prompt: 'One more thing before I go: on which port does the Northbound sandbox run on my machine?',
  rounds: [],
  answer: null,
  right: /\b7413\b/,
};
const CONFLICTS: Question = {
  prompt: 'Morning. Who told us that booking conflicts with the carrier must not be retried, and what had happened?',
  rounds: [],
  answer: null,
  right: /\bIlse\b/,
};
const ROLLBACK: Question = {
  prompt: 'The new queue looks bad in production. What was the command to switch the queue flag off again?',
  rounds: [],
  answer: null,
  right: /make flag-off FLAG=queue_v2/,
};

const TODO: StoryTurn = {
  prompt: 'Which TODO comments are still open under src?',
  rounds: [
    {
      tools: [
        {
          name: 'Grep',
          input: { pattern: 'TODO', path: 'src' },
          result:
            'src/labels/fonts.ts:31: // TODO: subset the bold face as well\nsrc/export/header.ts:12: // TODO: translate the column titles',
        },
      ],
    },
  ],
  answer: 'Two: subsetting the bold face of the label font, and translating the column titles of the export.',
};

/** Two days of work on an invented parcel service; nobody and nothing in it exists. */
export const STORY: readonly StorySession[] = [
  {
    id: '5b0c7c52-6f5e-4c7e-9d55-0d6a3f1e7a01',
    pauseMs: 0,
    turns: [...carrierTurns, ...migrationTurns, ...flakyTurns, ...labelTurns, ...rolloutTurns, ...exportTurns, PORT],
  },
  { id: '8f1f0a77-21c4-4b1b-8a7e-3c9d2b6e5f02', pauseMs: NIGHT_MS, turns: [CONFLICTS, TODO, ROLLBACK] },
];

export function isQuestion(turn: StoryTurn): turn is Question {
  return turn.answer === null;
}
