import { beforeAbort } from './abort.ts';
import type { MemoryDeps } from './deps.ts';
import { createModelGate } from './model-gate.ts';
import type { SensorInput, SensorReading } from './ports.ts';

export interface Sensor {
  /** The model's reading, or at once the local one where the model is missing, failing or late. Never rejects. */
  sense(input: SensorInput): Promise<SensorReading>;
  close(): void;
}

export function createSensor({
  model,
  local,
  quota,
  clock,
  log,
}: Pick<MemoryDeps, 'model' | 'local' | 'quota' | 'clock' | 'log'>): Sensor {
  const gate = createModelGate(clock, quota);
  const closing = new AbortController();
  return {
    async sense(input) {
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
      return local.sense(input, new AbortController().signal);
    },
    close: () => closing.abort(new Error('memory is closing')),
  };
}
