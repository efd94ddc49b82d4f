import { z } from 'zod';

/** What holds, or held until `valid_to`. */
export const factSchema = z.object({
  /** Derived from concept, value and source, so that the same conversation gives the same ids. */
  id: z.string().min(1),
  concept: z.string().min(1),
  /** As it was said first. */
  value: z.string().min(1),
  /** The newest span of a turn that says so. */
  evidence: z.string(),
  turn_id: z.string(),
  session_id: z.string(),
  /** 0 to 1. */
  salience: z.number().min(0).max(1),
  /** `user` once the user said so. */
  origin: z.enum(['user', 'assistant']),
  /** Turns that say so. */
  asserted: z.int().min(1),
  valid_from: z.iso.datetime(),
  /** Null while it holds. */
  valid_to: z.iso.datetime().nullable(),
});
export type Fact = Readonly<z.infer<typeof factSchema>>;

/** Facts of these concepts are the user's, in every project. */
export const isOfUser = (concept: string): boolean => concept.startsWith('Person.');

export const factStateSchema = z.object({
  version: z.literal(1),
  /** What holds, by the time of the last assertion. */
  facts: z.array(factSchema).readonly(),
  /** What was negated, by the time of the negation. */
  closed: z.array(factSchema).readonly(),
});
/** Plain data, to be kept as JSON. */
export type FactState = Readonly<z.infer<typeof factStateSchema>>;
