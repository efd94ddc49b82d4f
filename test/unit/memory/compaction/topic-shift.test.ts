import { describe, expect, test } from 'vitest';
import { plantedConversation } from '../../../../bench/local/planted.ts';
import { createLocalModel } from '../../../../memory/compaction/rules-model.ts';
import { summarizeByRules } from '../../../../memory/compaction/rules-summary.ts';
import { isShift } from '../../../../memory/compaction/topic-shift.ts';
import { createStaticEmbedder } from '../../../../memory/embeddings/static-embedder.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const calm = new AbortController().signal;
const say = (prompt: string, answer = 'Done.') => readTurn(talk(prompt, answer));
const none = new Map();
const before = [
  say('The label printer drops every tenth label.', 'The label printer lost its buffer.'),
  say('Print the labels one by one then.', 'Labels are printed one by one.'),
];

describe('the beginning of another topic', () => {
  const other = say('Finance wants revenue charts for each quarter.');

  test('is a prompt of other words, not an answer or a question about the same', () => {
    expect(isShift(say('Finance wants charts of revenue. Draw one for each quarter, please.'), before, none)).toBe(
      false,
    );
    expect(isShift(say('Now the revenue charts for finance, one for each quarter.'), before, none)).toBe(true);
    expect(isShift(say('Does the label printer keep its buffer now?'), before, none)).toBe(false);
    expect(isShift(say('yes, do it'), before, none)).toBe(false);
    expect(isShift(other, [], none)).toBe(false);
  });

  test('is nearer after a greeting, a pause, on other files', () => {
    const later = readTurn(
      talk('Finance wants revenue charts for each quarter.', 'Done.', { atMs: 1_800_003_000_000 }),
    );
    expect(isShift(later, before, none)).toBe(true);
    expect(isShift(say('Hello again! Did you read about that marathon?'), before, none)).toBe(true);
    expect(isShift(say('Hello again! The label printer drops labels.'), before, none)).toBe(false);
    const work = (prompt: string, file: string) =>
      readTurn(
        getTurn(prompt, [
          ...toolRound('Read', { file_path: file }, 'x'),
          message('assistant', [{ type: 'text', text: 'Done.' }]),
        ]),
      );
    const onLabels = [work('Print labels one by one.', '/w/src/labels/print.ts')];
    const prompt = 'Finance wants revenue charts for each quarter.';
    expect(isShift(work(prompt, '/w/src/charts/draw.ts'), onLabels, none)).toBe(true);
    expect(isShift(work(prompt, '/w/src/labels/print.ts'), onLabels, none)).toBe(false);
    expect(isShift(work('Quarterly charts next.', '/w/src/charts/draw.ts'), onLabels, none)).toBe(true);
    expect(isShift(work('Do that.', '/w/src/charts/draw.ts'), onLabels, none)).toBe(false);
  });

  test('shows in vectors: farther from the turns before it than they are from each other', () => {
    const vectors = new Map([
      [before[0], Float32Array.of(1, 0)],
      [before[1], Float32Array.of(0.96, 0.28)],
    ] as const);
    const near = new Map([...vectors, [other, Float32Array.of(1, 0)] as const]) as never;
    const far = new Map([...vectors, [other, Float32Array.of(-1, 0)] as const]) as never;
    expect([isShift(other, before, near), isShift(other, before, far)]).toEqual([false, true]);
    const odd = new Map([...vectors, [other, Float32Array.of(1, 0, 0)] as const]) as never;
    expect(isShift(other, before, odd)).toBe(isShift(other, before, none));
  });
});

describe('unlabeled invented days', () => {
  const days = [11, 12, 13].map(plantedConversation);

  test('keep nine facts of ten in their summaries, more than their first words', () => {
    const sum = { facts: 0, kept: 0, lead: 0 };
    for (const { turns, facts } of days) {
      for (let at = 0; at < turns.length; at += 10) {
        const batch = turns.slice(at, at + 10).map(({ turn }) => turn);
        for (const node of summarizeByRules({ turns: batch, knownTags: [], brief: '' }).nodes) {
          const own = batch.filter(({ turnId }) => node.turns.includes(turnId));
          const said = own.flatMap(({ user, parts }) => [
            user,
            ...parts.filter(({ kind }) => kind === 'assistant').map(({ text }) => text),
          ]);
          const lead = said.join(' ').slice(0, 600);
          for (const { values } of facts.filter(({ turn }) => node.turns.includes(turn))) {
            sum.facts += 1;
            sum.kept += Number(values.every((value) => node.summary.includes(value)));
            sum.lead += Number(values.every((value) => lead.includes(value)));
          }
        }
      }
    }
    expect(sum.facts).toBeGreaterThan(100);
    expect(sum.kept / sum.facts).toBeGreaterThan(0.9);
    expect(sum.kept).toBeGreaterThan(1.2 * sum.lead);
  });

  test('fall into their topics better than into pieces of any fixed number of turns', async () => {
    const local = createLocalModel({ embedder: createStaticEmbedder() });
    const read: boolean[][] = [];
    for (const { turns } of days) {
      const broken = turns.map(async ({ turn }, at) => {
        const buffer = turns.slice(Math.max(0, at - 5), at).map((each) => each.turn);
        return at >= 2 && (await local.detectTopicShift({ buffer, turn }, calm)).logic_flow === 'BROKEN';
      });
      read.push(await Promise.all(broken));
    }
    const score = (isBroken: (day: number, at: number) => boolean): number => {
      let [right, wrong] = [0, 0];
      for (const [day, { turns }] of days.entries()) {
        for (const [at, { begins }] of turns.entries()) {
          if (at < 2) continue;
          if (isBroken(day, at) && begins) right += 1;
          else if (isBroken(day, at) !== begins) wrong += 1;
        }
      }
      return (2 * right) / (2 * right + wrong);
    };
    const fixed = Array.from({ length: 20 }, (_, every) => score((_day, at) => at % (every + 3) === 0));
    const gate = score((day, at) => read[day]?.[at] === true);
    expect(gate).toBeGreaterThan(0.6);
    expect(gate).toBeGreaterThan(2 * Math.max(...fixed));
  });
});
