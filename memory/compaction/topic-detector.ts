import { beforeAbort } from '../../common/async.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import type { TopicShiftInput, TopicShiftReading } from '../models/model.ts';
import { createBackoff } from '../models/quota.ts';
import { GREETING, wordDrift } from './topic-shift.ts';

export type TopicDetector = ReturnType<typeof createTopicDetector>;

export function createTopicDetector(parts: Pick<ServiceParts, 'model' | 'local' | 'quota' | 'clock' | 'log'>) {
  const { model, local, quota, clock, log } = parts;
  const gate = createBackoff(clock, quota);
  const closing = new AbortController();
  const locally = (input: TopicShiftInput): Promise<TopicShiftReading> =>
    local.detectTopicShift(input, new AbortController().signal);
  const counts = { turns: 0, in_doubt: 0, asked: 0 };
  return {
    /** Turns that were read since the start, those that words leave in doubt, and those that a model was asked about. */
    counts: () => ({ ...counts }),
    /** Uses rules when the words are clear or the model is unavailable, else the model. Never rejects. */
    async detect(input: TopicShiftInput): Promise<TopicShiftReading> {
      const flow = readFlow(input);
      counts.turns += 1;
      if (flow !== null) return { ...(await locally(input)), logic_flow: flow };
      counts.in_doubt += 1;
      if (model !== null && gate.isOpen(input.sessionId) && !closing.signal.aborted) {
        counts.asked += 1;
        try {
          const reading = await beforeAbort(model.detectTopicShift(input, closing.signal), closing.signal);
          gate.succeeded();
          return reading;
        } catch (error) {
          if (!closing.signal.aborted) gate.failed();
          log.warn('model failed to detect topics; rules decide', { error });
        }
      }
      return locally(input);
    },
    close: (): void => closing.abort(new Error('memory is closing')),
  };
}

/**
 * Drift below the one continues the topic, from the other on starts another. Fitted by `npm run bench:sensor`: coding
 * topics start at 0.5, chats continue up to 0.95.
 */
export const TOPIC_THRESHOLDS = { maintainBelow: 0.5, brokenFrom: 0.95 } as const;

const LEAD = /^(?:(?:ok(?:ay)?|alright|all right|great|good|nice|perfect|thanks|thank you|well|so|now)\b[\s,.!:;-]*)+/i;
/** Announces another topic; must not match "switch to pnpm" or "a new task type". */
const SWITCH =
  /^(?:(?:an? )?(?:new|next|another|different|unrelated) (?:topic|subject|task|question)\s*[:.,;]|(?:let's|let us) (?:move on|(?:switch|change) (?:the )?(?:topics?|subjects?|gears))\b|(?:moving on|switching gears|change of (?:subject|topic))\b|on (?:a|another) (?:different|unrelated )?(?:note|topic)\s*[:,]|(?:something (?:else|different)|(?:completely )?unrelated)\s*[:.,;])/i;

/** Null: in doubt. */
export function readFlow({ buffer, turn }: TopicShiftInput): TopicShiftReading['logic_flow'] | null {
  if (buffer.length === 0) return 'MAINTAIN';
  const prompt = turn.user.trim();
  if (SWITCH.test(prompt.replace(LEAD, ''))) return 'BROKEN';
  if (GREETING.test(prompt)) return null;
  const drift = wordDrift(turn, buffer);
  if (drift === null || drift < TOPIC_THRESHOLDS.maintainBelow) return 'MAINTAIN';
  return drift >= TOPIC_THRESHOLDS.brokenFrom ? 'BROKEN' : null;
}
