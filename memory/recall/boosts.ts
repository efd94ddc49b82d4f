import type { Origin } from '../../common/turn.ts';
import { dateAgreement, type NamedDate } from '../search/dates.ts';

/** Shares by which a signal at its best raises a score. */
export interface Boosts {
  readonly recency: number;
  readonly temporal: number;
  readonly proof: number;
  /** By origin: the user's own words most. */
  readonly trust: number;
  readonly project: number;
}

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

/** By how much a node's score is raised; 1 for one that is gone. */
export function getRaise(facts: Raised | null, { boosts, project, nowMs, date }: BoostRules): number {
  if (facts === null) return 1;
  const { origin, atMs, recalled } = facts;
  return (
    (1 + boosts.recency * 2 ** (-Math.max(0, nowMs - atMs) / HALF_LIFE_MS)) *
    (1 + (date === null ? 0 : boosts.temporal * dateAgreement(date, atMs))) *
    (1 + boosts.proof * (recalled / (recalled + PROVEN_RECALLS))) *
    (1 + boosts.trust * ORIGIN_TRUST[origin]) *
    (1 + (facts.project === project && project !== '' ? boosts.project : 0))
  );
}
