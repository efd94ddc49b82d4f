import type { SensorInput, SensorReading } from '../models/language-model.ts';
import { driftOf } from './drift.ts';

export interface SensorThresholds {
  /** Drift below which a turn goes on with what was going on. */
  readonly maintainBelow: number;
  /** Drift from which it has nothing to do with it. */
  readonly brokenFrom: number;
}

/** Fitted with `npm run bench:sensor`: from 0.5 on topics of coding work begin, from 0.85 to 0.95 chats still go on. */
export const SENSOR_THRESHOLDS: SensorThresholds = { maintainBelow: 0.5, brokenFrom: 0.95 };

/** What is clear of a turn without a model; `because` says by what. */
export type Flow =
  | {
      readonly kind: 'clear';
      readonly flow: SensorReading['logic_flow'];
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
export function readFlow({ buffer, turn }: SensorInput, thresholds = SENSOR_THRESHOLDS): Flow {
  if (buffer.length === 0) return { kind: 'clear', flow: 'MAINTAIN', because: 'first' };
  const prompt = turn.user.trim();
  if (SWITCH.test(prompt.replace(LEAD, ''))) return { kind: 'clear', flow: 'BROKEN', because: 'said_so' };
  if (GREETING.test(prompt)) return { kind: 'doubt' };
  const drift = driftOf(turn, buffer);
  if (drift === null) return { kind: 'clear', flow: 'MAINTAIN', because: 'few_words' };
  if (drift < thresholds.maintainBelow) return { kind: 'clear', flow: 'MAINTAIN', because: 'same_words' };
  if (drift >= thresholds.brokenFrom) return { kind: 'clear', flow: 'BROKEN', because: 'other_words' };
  return { kind: 'doubt' };
}
