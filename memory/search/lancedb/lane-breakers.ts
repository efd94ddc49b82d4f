import { type Breaker, createBreaker } from '../circuit-breaker.ts';
import type { Hits, Lane } from '../node-index.ts';

export const NO_HITS: Hits = { slots: [], scores: [] };

export type LaneGuards = (lane: Lane) => Breaker;

/** A breaker for each lane. */
export function createLaneGuards(now: () => number): LaneGuards {
  const breakers = new Map<Lane, Breaker>();
  return (lane) => {
    const breaker = breakers.get(lane) ?? createBreaker(now);
    breakers.set(lane, breaker);
    return breaker;
  };
}

export interface GuardedLanes {
  /** What `work` finds; nothing where every lane it is for is left out, broken, or fails now. */
  ask(lanes: readonly [Lane, ...Lane[]], work: () => Hits | Promise<Hits>): Promise<Hits>;
  /** To be called when all are done: the first failure, null without one. @throws it where nothing was found */
  settle(): unknown;
}

/** The lanes of one search: what fails is missed, the others answer. */
export function lanesOf(guards: LaneGuards, without: ReadonlySet<Lane>): GuardedLanes {
  const failures: unknown[] = [];
  let found = false;
  let barred = 0;
  return {
    async ask(lanes, work) {
      if (lanes.every((lane) => without.has(lane))) return NO_HITS;
      const breaker = guards(lanes[0]);
      if (!breaker.allows()) {
        barred += 1;
        return NO_HITS;
      }
      try {
        const hits = await work();
        breaker.succeeded();
        found ||= hits.slots.length > 0;
        return hits;
      } catch (error) {
        breaker.failed();
        failures.push(error);
        return NO_HITS;
      }
    },
    settle() {
      const [first = null] = failures;
      if (found) return first;
      if (first !== null) throw first;
      if (barred > 0) throw new Error('every lane failed before; they are tried again later');
      return null;
    },
  };
}
