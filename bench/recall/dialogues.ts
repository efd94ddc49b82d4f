import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { CapturedTurn } from '../../common/turn.ts';
import { createLocalModel } from '../../memory/compaction/rules-model.ts';
import type { LanguageModel, SummaryInput } from '../../memory/models/model.ts';
import { capturedTurn } from './product.ts';

const Dialogues = z.array(
  z.looseObject({
    id: z.string(),
    sessions: z.array(
      z.looseObject({
        id: z.union([z.string(), z.number()]),
        date: z.string(),
        turns: z.array(z.looseObject({ id: z.string(), speaker: z.string(), text: z.string() })),
      }),
    ),
    observations: z.array(z.looseObject({ text: z.string(), evidence: z.array(z.string()) })).default([]),
    qa: z.array(z.looseObject({ question: z.string(), category: z.number(), evidence: z.array(z.string()) })),
  }),
);

/** Conversations in LoCoMo's shape. */
export type Dialogue = z.infer<typeof Dialogues>[number];

const MONTHS = 'january february march april may june july august september october november december'.split(' ');
const TURN_MS = 20_000;

export function readDialogues(file: string): Dialogue[] {
  return Dialogues.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** Where a dialogue lives: each is a project. */
export function projectOf({ id }: Dialogue): string {
  return `/bench/${id}`;
}

/** Each utterance as a turn of its own, for evidence names utterances. */
export function getTurns(dialogue: Dialogue): readonly { readonly id: string; readonly turn: CapturedTurn }[] {
  return dialogue.sessions.flatMap((session) =>
    session.turns.map(({ id, speaker, text }, at) => {
      const atMs = getDate(session.date) + at * TURN_MS;
      const place = { sessionId: `${dialogue.id}-${session.id}`, projectDir: projectOf(dialogue), atMs };
      return { id, turn: capturedTurn(`${dialogue.id} ${id}`, [['user', `${speaker}: ${text}`]], place) };
    }),
  );
}

/** `1:56 pm on 8 May, 2023`, or whatever Date can read. */
function getDate(text: string): number {
  const spoken = /(\d+):(\d+) (am|pm) on (\d+) (\w+), (\d+)/i.exec(text);
  if (spoken === null) return Date.parse(text);
  const [, hour, minute, half, day, month = '', year] = spoken;
  const hours = (Number(hour) % 12) + (half?.toLowerCase() === 'pm' ? 12 : 0);
  return Date.UTC(Number(year), MONTHS.indexOf(month.toLowerCase()), Number(day), hours, Number(minute));
}

/** The local adapter with a file's observations as the facts that a model would have written. */
export function modelWithFacts(dialogues: readonly Dialogue[]): LanguageModel {
  const local = createLocalModel();
  const facts = dialogues.flatMap((dialogue) => {
    const turnIds = new Map(getTurns(dialogue).map(({ id, turn }) => [id, turn.turnId]));
    return dialogue.observations.map(({ text, evidence }) => ({
      text,
      evidence: evidence.flatMap((id) => turnIds.get(id) ?? []),
    }));
  });
  const compact = async (input: SummaryInput, signal: AbortSignal) => {
    const { nodes, brief } = await local.summarize(input, signal);
    const told = nodes.map((node) => {
      const own = new Set(node.turns);
      const stated = facts.filter(({ evidence }) => evidence.some((turnId) => own.has(turnId)));
      return {
        ...node,
        facts: stated.map(({ text, evidence }) => ({
          concept: text.split(' ')[0] ?? 'fact',
          value: text,
          polarity: 'positive' as const,
          evidence,
        })),
      };
    });
    return { nodes: told, brief };
  };
  return { ...local, name: 'observations', summarize: compact };
}
