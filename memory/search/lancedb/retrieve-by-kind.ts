import type { FoundRow, Hits, Lane } from '../node-index.ts';
import { NO_HITS } from './lane-breakers.ts';

type Kind = FoundRow['kind'];
type Nearest = (kinds: readonly Kind[] | undefined, most: number) => Promise<Hits>;

const KINDS = ['turn', 'node', 'fact'] as const;
const LANE = { turn: 'meaning', node: 'summary', fact: 'factMeaning' } as const;

export interface KindsAsked {
  readonly held: (kind: Kind) => boolean;
  readonly without: ReadonlySet<Lane>;
}

export function kindsAsked({ held, without }: KindsAsked): Kind[] {
  return KINDS.filter((kind) => held(kind) && !without.has(LANE[kind]));
}

/**
 * The nearest rows of several kinds, so many of each at most, with one search: comparing vectors costs the same
 * whatever they belong to. A kind that others crowded out is asked for by itself.
 */
export function nearestOfKinds(
  limits: Readonly<Record<Kind, number>>,
  { kindAt, ...among }: KindsAsked & { readonly kindAt: (slot: number) => Kind | undefined },
): (nearest: Nearest) => Promise<Hits> {
  const present = KINDS.filter(among.held);
  const kinds = kindsAsked(among);
  const most = kinds.reduce((sum, kind) => sum + limits[kind], 0);
  return async (nearest) => {
    if (kinds.length === 0) return NO_HITS;
    const hits = await nearest(kinds.length === present.length ? undefined : kinds, most);
    const isFull = hits.slots.length === most;
    const found = kinds.map(async (kind) => {
      const own = ofKind(hits, (slot) => kindAt(slot) === kind, limits[kind]);
      return isFull && own.slots.length < limits[kind] / 2 ? await nearest([kind], limits[kind]) : own;
    });
    return joined(await Promise.all(found));
  };
}

export function joined(parts: readonly Hits[]): Hits {
  return { slots: parts.flatMap(({ slots }) => slots), scores: parts.flatMap(({ scores }) => scores) };
}

/** Best first, as `hits` are. */
export function ofKind({ slots, scores }: Hits, is: (slot: number) => boolean, most: number): Hits {
  const own: { slots: number[]; scores: number[] } = { slots: [], scores: [] };
  for (let at = 0; at < slots.length && own.slots.length < most; at += 1) {
    const slot = slots[at] as number;
    if (!is(slot)) continue;
    own.slots.push(slot);
    own.scores.push(scores[at] as number);
  }
  return own;
}
