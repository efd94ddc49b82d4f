import type { Lane, LaneHit } from '../ports.ts';

type Kind = LaneHit['row']['kind'];
type Nearest = (kinds: readonly Kind[] | undefined, most: number) => Promise<readonly LaneHit[]>;

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
  among: KindsAsked,
): (nearest: Nearest) => Promise<LaneHit[]> {
  const present = KINDS.filter(among.held);
  const kinds = kindsAsked(among);
  const most = kinds.reduce((sum, kind) => sum + limits[kind], 0);
  return async (nearest) => {
    if (kinds.length === 0) return [];
    const hits = await nearest(kinds.length === present.length ? undefined : kinds, most);
    if (hits.length < most) return kinds.flatMap((kind) => ofKind(hits, kind, limits[kind]));
    const found = kinds.map(async (kind) => {
      const own = ofKind(hits, kind, limits[kind]);
      return own.length < limits[kind] / 2 ? await nearest([kind], limits[kind]) : own;
    });
    return (await Promise.all(found)).flat();
  };
}

/** Best first, as `hits` are. */
export function ofKind(hits: readonly LaneHit[], kind: Kind, most: number): LaneHit[] {
  return hits.filter(({ row }) => row.kind === kind).slice(0, most);
}
