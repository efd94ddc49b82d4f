import { describe, expect, test } from 'vitest';
import { readTurn } from '../../memory/ingest/turn-trust.ts';
import type { LanguageModel } from '../../memory/models/model.ts';
import { talk } from '../helpers/turns.ts';

/** What every `LanguageModel` must do, whoever answers. */
export function languageModelContract(name: string, make: () => LanguageModel): void {
  const turns = [
    talk('The shop database must listen on port 5433, not 5432.', 'Decided: src/db.ts now uses port 5433.'),
    talk('Add a retry to the payment client.', 'payment-client.ts retries 3 times with backoff 200 ms.'),
    talk('Run the tests.', 'All 42 tests pass.'),
  ].map(readTurn);
  const signal = new AbortController().signal;

  describe(`the language model contract, ${name}`, () => {
    test('a reading is within its ranges', async () => {
      const model = make();
      const reading = await model.detectTopicShift({ buffer: turns.slice(0, 2), turn: turns[2] as never }, signal);
      expect(['MAINTAIN', 'BROKEN']).toContain(reading.logic_flow);
      expect([1, 2, 3, 4, 5]).toContain(reading.load_level);
      expect(typeof reading.redundancy_detected).toBe('boolean');
      await model.close();
    });

    test('nodes cover every turn and name no other; texts are not empty', async () => {
      const model = make();
      const { nodes, brief } = await model.summarize({ turns, knownTags: [], brief: '' }, signal);
      const turnIds = turns.map((turn) => turn.turnId);
      expect(new Set(nodes.flatMap((node) => node.turns))).toEqual(new Set(turnIds));
      for (const node of nodes) {
        expect(node.summary).not.toBe('');
        expect(node.trigger).toMatch(/^When I /);
        for (const fact of node.facts) expect(turnIds).toEqual(expect.arrayContaining([...fact.evidence]));
      }
      const claims = [...brief.active, ...brief.hints];
      expect(turnIds).toEqual(expect.arrayContaining(claims.flatMap((claim) => [...claim.sources])));
      await model.close();
    });

    test('a detail has at most eight sentences, none of them empty', async () => {
      const model = make();
      const { sentences } = await model.expand({ summary: 'the shop database', turns }, signal);
      expect(sentences.length).toBeGreaterThan(0);
      expect(sentences.length).toBeLessThanOrEqual(8);
      for (const sentence of sentences) expect(sentence.trim()).not.toBe('');
      await model.close();
    });

    test('closing twice is harmless', async () => {
      const model = make();
      await model.close();
      await model.close();
    });
  });
}
