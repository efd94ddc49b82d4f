import type { Clock } from '../../common/async.ts';
import { beforeAbort } from '../../common/async.ts';
import type { Log } from '../../common/log.ts';
import { createBackoff } from '../models/backoff.ts';
import type { LanguageModel, TopicShiftInput, TopicShiftReading } from '../models/language-model.ts';
import type { ModelQuota } from '../models/quota.ts';
import { wordDrift } from './topic-shift.ts';

export interface TopicDetector {
  /**
   * The local reading where the turn's words are clear, else the model's; the local one again where the model is
   * missing, failing, late, or held back by the quota. Never rejects.
   */
  detect(input: TopicShiftInput): Promise<TopicShiftReading>;
  close(): void;
}

export function createTopicDetector({
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
}): TopicDetector {
  const gate = createBackoff(clock, quota);
  const closing = new AbortController();
  const locally = (input: TopicShiftInput): Promise<TopicShiftReading> =>
    local.detectTopicShift(input, new AbortController().signal);
  return {
    async detect(input) {
      const clear = readFlow(input);
      if (clear.kind === 'clear') return { ...(await locally(input)), logic_flow: clear.flow };
      if (model !== null && gate.isOpen() && !closing.signal.aborted) {
        try {
          const reading = await beforeAbort(model.detectTopicShift(input, closing.signal), closing.signal);
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

interface TopicThresholds {
  /** Drift below which a turn goes on with what was going on. */
  readonly maintainBelow: number;
  /** Drift from which it has nothing to do with it. */
  readonly brokenFrom: number;
}

/** Fitted with `npm run bench:sensor`: from 0.5 on topics of coding work begin, from 0.85 to 0.95 chats still go on. */
export const TOPIC_THRESHOLDS: TopicThresholds = { maintainBelow: 0.5, brokenFrom: 0.95 };

/** What is clear of a turn without a model; `because` says by what. */
type Flow =
  | {
      readonly kind: 'clear';
      readonly flow: TopicShiftReading['logic_flow'];
      readonly because: 'first' | 'said_so' | 'few_words' | 'same_words' | 'other_words';
    }
  | { readonly kind: 'doubt' };

const LEAD = /^(?:(?:ok(?:ay)?|alright|all right|great|good|nice|perfect|thanks|thank you|well|so|now)\b[\s,.!:;-]*)+/i;
/** About the conversation, not the work: "switch to pnpm" or "a new task type" are no such thing. */
const SWITCH =
  /^(?:(?:an? )?(?:new|next|another|different|unrelated) (?:topic|subject|task|question)\s*[:.,;]|(?:let's|let us) (?:move on|(?:switch|change) (?:the )?(?:topics?|subjects?|gears))\b|(?:moving on|switching gears|change of (?:subject|topic))\b|on (?:a|another) (?:different|unrelated )?(?:note|topic)\s*[:,]|(?:something (?:else|different)|(?:completely )?unrelated)\s*[:.,;])/i;
/** Opens something, or goes on after a break: its words do not tell which. */
const GREETING = /^(?:hi|hey|hello|morning|good (?:morning|afternoon|evening))\b/i;

/** Whether the newest turn goes on with those before it, as far as its words leave no doubt. Costs nothing. */
export function readFlow({ buffer, turn }: TopicShiftInput, thresholds = TOPIC_THRESHOLDS): Flow {
  if (buffer.length === 0) return { kind: 'clear', flow: 'MAINTAIN', because: 'first' };
  const prompt = turn.user.trim();
  if (SWITCH.test(prompt.replace(LEAD, ''))) return { kind: 'clear', flow: 'BROKEN', because: 'said_so' };
  if (GREETING.test(prompt)) return { kind: 'doubt' };
  const drift = wordDrift(turn, buffer);
  if (drift === null) return { kind: 'clear', flow: 'MAINTAIN', because: 'few_words' };
  if (drift < thresholds.maintainBelow) return { kind: 'clear', flow: 'MAINTAIN', because: 'same_words' };
  if (drift >= thresholds.brokenFrom) return { kind: 'clear', flow: 'BROKEN', because: 'other_words' };
  return { kind: 'doubt' };
}
