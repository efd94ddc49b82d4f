import type { Clock } from '../../common/async.ts';
import { beforeAbort } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import { createModelGate } from '../models/backoff.ts';
import type { LanguageModel, SensorInput, SensorReading } from '../models/language-model.ts';
import type { ModelQuota } from '../models/quota.ts';
import { readFlow } from './topic-shift-heuristics.ts';

export interface Sensor {
  /**
   * The local reading where the turn's words are clear, else the model's; the local one again where the model is
   * missing, failing, late, or held back by the quota. Never rejects.
   */
  sense(input: SensorInput): Promise<SensorReading>;
  close(): void;
}

export function createSensor({
  model,
  local,
  quota,
  clock,
  log,
}: {
  readonly model: LanguageModel | null;
  readonly local: LanguageModel;
  readonly quota?: ModelQuota;
  readonly clock: Clock;
  readonly log: Log;
}): Sensor {
  const gate = createModelGate(clock, quota);
  const closing = new AbortController();
  const locally = (input: SensorInput): Promise<SensorReading> => local.sense(input, new AbortController().signal);
  return {
    async sense(input) {
      const clear = readFlow(input);
      if (clear.kind === 'clear') return { ...(await locally(input)), logic_flow: clear.flow };
      if (model !== null && gate.isOpen() && !closing.signal.aborted) {
        try {
          const reading = await beforeAbort(model.sense(input, closing.signal), closing.signal);
          gate.succeeded();
          return reading;
        } catch (error) {
          if (!closing.signal.aborted) gate.failed();
          log.warn('the sensor gave no reading; the local one decides', { error });
        }
      }
      return locally(input);
    },
    close: () => closing.abort(new Error('memory is closing')),
  };
}
