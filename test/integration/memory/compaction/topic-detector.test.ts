import { describe, expect, test } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import { createLocalModel } from '../../../../memory/compaction/rules-model.ts';
import { createTopicDetector } from '../../../../memory/compaction/topic-detector.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';
import type { QuotaDecision } from '../../../../memory/models/quota.ts';
import { calmReading, scriptedModel } from '../../../helpers/scripted-model.ts';
import { talk } from '../../../helpers/turns.ts';

const say = (prompt: string, answer = 'Done.') => readTurn(talk(prompt, answer));
const buffer = [say('Carrier bookings need retries with backoff.', 'The booking client retries four times.')];
const doubtful = say('The warehouse screen shows stale bookings after midnight', 'A cache keeps yesterday’s list.');

function sensorOver(decision: QuotaDecision = { kind: 'allow' }) {
  const model = scriptedModel({ sense: () => ({ ...calmReading, logic_flow: 'BROKEN', load_level: 5 }) });
  const quota = { decide: () => decision };
  const sensor = createTopicDetector({
    model,
    quota,
    local: createLocalModel(),
    clock: { now: () => 0 },
    log: silentLog,
  });
  return { model, sensor };
}

describe('the sensor', () => {
  test('asks the model only in doubt', async () => {
    const { model, sensor } = sensorOver();
    expect(await sensor.detect({ buffer, turn: say('yes, do it') })).toMatchObject({
      logic_flow: 'MAINTAIN',
      load_level: 1,
    });
    expect(await sensor.detect({ buffer, turn: say('New topic: bookings') })).toMatchObject({ logic_flow: 'BROKEN' });
    expect(model.sensed).toHaveLength(0);
    expect(await sensor.detect({ buffer, turn: doubtful })).toMatchObject({ logic_flow: 'BROKEN', load_level: 5 });
    expect(model.sensed).toHaveLength(1);
  });

  test('finds high load by size without the model', async () => {
    const { model, sensor } = sensorOver();
    const turn = say('Go on.', 'The booking client retries four times. '.repeat(600));
    expect((await sensor.detect({ buffer, turn })).load_level).toBeGreaterThanOrEqual(4);
    expect(model.sensed).toHaveLength(0);
  });

  test('reads locally what is in doubt while the quota says no', async () => {
    const { model, sensor } = sensorOver({ kind: 'defer', untilMs: 1_000, because: 'spent' });
    expect(await sensor.detect({ buffer, turn: doubtful })).toMatchObject({ load_level: 1 });
    expect(model.sensed).toHaveLength(0);
  });
});
