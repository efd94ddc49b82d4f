import type { Config } from '../../common/config.ts';
import type { Origin } from '../../common/turn.ts';
import { dateAgreement, type NamedDate } from '../search/dates.ts';

/** Shares by which a signal at its best raises a score. */
export type Boosts = Config['recall']['boosts'];

export interface Raised {
  readonly origin: Origin;
  readonly project: string;
  readonly atMs: number;
  readonly recalled: number;
}

export interface BoostRules {
  readonly boosts: Boosts;
  /** The project that asks, '' for none. */
  readonly project: string;
  readonly nowMs: number;
  readonly date: NamedDate | null;
}

export const ORIGIN_TRUST: Readonly<Record<Origin, number>> = { user: 1, assistant: 0.7, tool: 0.3, external: 0 };
const HALF_LIFE_MS = 30 * 86_400_000;
const PROVEN_RECALLS = 5;

/** By how much a node's score is raised. */
export function getRaise(facts: Raised, { boosts, project, nowMs, date }: BoostRules): number {
  const { origin, atMs, recalled } = facts;
  return (
    (1 + boosts.recency * 2 ** (-Math.max(0, nowMs - atMs) / HALF_LIFE_MS)) *
    (1 + (date === null ? 0 : boosts.temporal * dateAgreement(date, atMs))) *
    (1 + boosts.proof * (recalled / (recalled + PROVEN_RECALLS))) *
    (1 + boosts.trust * ORIGIN_TRUST[origin]) *
    (1 + (facts.project === project && project !== '' ? boosts.project : 0))
  );
}
