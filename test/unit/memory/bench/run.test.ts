import { expect, test } from 'vitest';
import { createBm25 } from '../../../../memory/bench/bm25.ts';
import type { Question } from '../../../../memory/bench/questions.ts';
import { askQuestions } from '../../../../memory/bench/run.ts';
import type { PastTurn } from '../../../../memory/bench/turns.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import type { RecallHit } from '../../../../memory/recall/types.ts';
import { makeNode } from '../../../helpers/nodes.ts';
import { talk } from '../../../helpers/turns.ts';

const SAID = ['the port of billing is 4100', 'the port of billing is now 4200', 'lunch was good'];

const turns = SAID.map((text, at): PastTurn => {
  const turn = talk(text, 'noted', { atMs: 1_800_000_000_000 + at });
  return { turn, project: 'p', read: readTurn(turn), text: `${text}\nnoted` };
});

function asked(answer: string, before: number, right: readonly number[]): Question {
  return { kind: 'value', text: 'which port of billing?', answer, before, right };
}

test('recall and BM25 see only the turns before a question', async () => {
  const told: string[] = [];
  const seen: number[] = [];
  const memory = {
    capture: (next: readonly { readonly turnId: string }[]) => void told.push(...next.map(({ turnId }) => turnId)),
    settle: async () => {},
    recall: async () => {
      seen.push(told.length);
      const newest = turns.findLast(({ turn, text }) => told.includes(turn.turnId) && text.includes('port'));
      const raw = { text: newest?.text ?? '', turn: newest?.turn.turnId ?? '' };
      return [{ node: makeNode({}), score: 1, line: { text: raw.text }, raw, lanes: {} } as unknown as RecallHit];
    },
    inject: (hits: readonly RecallHit[]) => hits.map(({ line }) => line.text).join('\n'),
  };
  const questions = [asked('4200', 3, [1]), asked('4100', 1, [0])];
  const outcomes = await askQuestions(turns, questions, memory, () => {});
  expect(seen).toEqual([1, 3]);
  expect(outcomes.map(({ recall, bm25 }) => [recall.rank, recall.holds, bm25.rank, bm25.holds])).toEqual([
    [1, true, 1, true],
    [1, true, 2, true],
  ]);
});

test('BM25 ranks by rare words, and of equal texts the newest first', () => {
  const plain = createBm25(['the port of billing', 'the port of the shop', 'the weather', 'the port of billing']);
  expect(plain.rank('billing port')).toEqual([3, 0, 1]);
  expect(plain.rank('aquarium')).toEqual([]);
});
