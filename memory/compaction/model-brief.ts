import { LruMap } from '../../common/map.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import type { Claim, StoredBrief } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { isTakenBack, type SourcedClaim, tellsState } from './brief.ts';

const SESSIONS_KEPT = 100;

interface Batch extends Pick<StoredBrief, 'project'> {
  readonly sessionId: string;
  readonly turns: readonly TurnText[];
}

interface Kept {
  readonly claims: readonly SourcedClaim[];
  /** All that a model was shown. */
  readonly turns: readonly string[];
  /** Texts of the brief as it was written last. */
  readonly written: string;
}

/** Briefs of sessions; between two calls of a model, which continues its own, rules make the one that is stored. */
export function createModelBriefs({ nodeFiles, turnRegistry }: Pick<ServiceParts, 'nodeFiles' | 'turnRegistry'>) {
  const sessions = new LruMap<string, Kept>(SESSIONS_KEPT);
  const stands = (claim: Claim): boolean => !isTakenBack(claim, turnRegistry);

  /** Of a brief of this project: a session may move to another one. */
  async function read({ sessionId, project }: Batch): Promise<readonly SourcedClaim[]> {
    const brief = await nodeFiles.readBrief(sessionId);
    return brief?.project === project ? getClaims(brief).filter(stands) : [];
  }

  /** Absent where someone changed the stored brief since. */
  async function getKept(sessionId: string): Promise<Kept | undefined> {
    const kept = sessions.get(sessionId);
    const stored = kept === undefined ? null : await nodeFiles.readBrief(sessionId);
    return stored !== null && getTexts(stored) === kept?.written ? kept : undefined;
  }

  function keep(brief: StoredBrief, { sessionId, turns: shown }: Batch, stored: StoredBrief): void {
    const turns = [...(sessions.get(sessionId)?.turns ?? []), ...shown.map(({ turnId }) => turnId)];
    sessions.set(sessionId, { claims: getClaims(brief), turns, written: getTexts(stored) });
  }

  return {
    read,
    /**
     * With what rules added of turns that no model was shown; as stored where someone changed it since.
     * @param isLast  of all turns of the session; the stored brief tells of later ones too
     */
    async readModels(batch: Batch, isLast: boolean): Promise<readonly SourcedClaim[]> {
      const kept = await getKept(batch.sessionId);
      const stored = isLast ? await read(batch) : [];
      if (kept === undefined) return stored;
      const known = new Set([...kept.turns, ...batch.turns.map(({ turnId }) => turnId)]);
      const own = new Set(kept.claims.map(({ text }) => text));
      const isKnown = ({ sources }: Claim): boolean => sources.length > 0 && sources.every((id) => known.has(id));
      const isNew = (claim: Claim): boolean => !own.has(claim.text) && !isKnown(claim) && !tellsState(claim);
      return [...kept.claims.filter(stands), ...stored.filter(isNew)];
    },
    async readAll(sessionId: string): Promise<readonly SourcedClaim[]> {
      const brief = await nodeFiles.readBrief(sessionId);
      return [...(brief === null ? [] : getClaims(brief)), ...(sessions.get(sessionId)?.claims ?? [])];
    },
    /** Keeps a model's brief of turns before the last; that of rules stays stored. Not where someone changed that. */
    async keep(brief: StoredBrief, batch: Batch): Promise<void> {
      const [stored, kept] = [await nodeFiles.readBrief(batch.sessionId), sessions.get(batch.sessionId)];
      if (stored !== null && getTexts(stored) === (kept?.written ?? getTexts(stored))) keep(brief, batch, stored);
    },
    /** Stores a brief. @param own  that of a model, of which it is made, and what that was shown; absent for one of rules */
    async write(brief: StoredBrief, own?: { readonly brief: StoredBrief; readonly batch: Batch }): Promise<void> {
      const kept = await getKept(brief.session_id);
      await nodeFiles.writeBrief(brief);
      if (own !== undefined) keep(own.brief, own.batch, brief);
      else if (kept === undefined) sessions.delete(brief.session_id);
      else sessions.set(brief.session_id, { ...kept, written: getTexts(brief) });
    },
  };
}

const getClaims = ({ active, hints }: StoredBrief): SourcedClaim[] => [...active, ...hints];

const getTexts = (brief: StoredBrief): string => JSON.stringify(getClaims(brief).map(({ text }) => text));
