import { LruMap } from '../../common/map.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import type { Claim, StoredBrief } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { isTakenBack, type SourcedClaim, tellsState } from './brief.ts';

const SESSIONS_KEPT = 100;

interface Batch {
  readonly sessionId: string;
  readonly project: string;
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

  return {
    read,
    /** With what rules added of turns that no model was shown; as stored where someone changed it since. */
    async readModels(batch: Batch): Promise<readonly SourcedClaim[]> {
      const kept = sessions.get(batch.sessionId);
      const stored = await read(batch);
      if (kept === undefined || getTexts(stored) !== kept.written) return stored;
      const known = new Set([...kept.turns, ...batch.turns.map(({ turnId }) => turnId)]);
      const own = new Set(kept.claims.map(({ text }) => text));
      const isNew = ({ text, sources }: Claim): boolean => !own.has(text) && sources.some((id) => !known.has(id));
      return [...kept.claims.filter(stands), ...stored.filter((claim) => isNew(claim) && !tellsState(claim))];
    },
    async readAll(sessionId: string): Promise<readonly SourcedClaim[]> {
      const brief = await nodeFiles.readBrief(sessionId);
      return [...(brief === null ? [] : getClaims(brief)), ...(sessions.get(sessionId)?.claims ?? [])];
    },
    /** Stores a brief. @param own  that of a model, of which it is made, and what that was shown; absent for one of rules */
    async write(brief: StoredBrief, own?: { readonly brief: StoredBrief; readonly batch: Batch }): Promise<void> {
      const { session_id: id } = brief;
      const kept = sessions.get(id);
      const before = kept === undefined ? null : await nodeFiles.readBrief(id);
      await nodeFiles.writeBrief(brief);
      const written = getTexts(getClaims(brief));
      if (own !== undefined) {
        const turns = [...(kept?.turns ?? []), ...own.batch.turns.map(({ turnId }) => turnId)];
        sessions.set(id, { claims: getClaims(own.brief), turns, written });
      } else if (kept !== undefined && before !== null && getTexts(getClaims(before)) === kept.written)
        sessions.set(id, { ...kept, written });
      else sessions.delete(id);
    },
  };
}

const getClaims = ({ active, hints }: StoredBrief): SourcedClaim[] => [...active, ...hints];

const getTexts = (claims: readonly Claim[]): string => JSON.stringify(claims.map(({ text }) => text));
