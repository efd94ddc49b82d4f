import { createSerialQueue } from '../../common/async.ts';
import { grouped } from '../../common/map.ts';
import { clip, trimEnd } from '../../common/text.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { NodeLimit } from '../compaction/compactor.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { isBundled, isFromText, isGroup, isRedirect, isWaitingDraft, type MemoryNode } from '../model/node.ts';
import { isQuarantined } from '../recall/quarantine.ts';
import { isClosed } from '../text/validity.ts';
import { byAge, contradicts, isSettled, isUsers, type MergeRule, mergedNodes } from './merge-nodes.ts';

type Parts = Pick<ServiceParts, 'clock' | 'log' | 'model' | 'catalogue' | 'store' | 'taskQueue'>;

/** Merges the oldest nodes of a session that has too many; every turn keeps a node and every id keeps resolving. */
export function createNodeLimit({ clock, log, model, catalogue, store, taskQueue }: Parts): NodeLimit {
  const serial = createSerialQueue((error) => log.warn('could not merge old memories of a long session', { error }));

  function getFolds(sessionId: string): readonly OldPair[] {
    if (catalogue.getSize(sessionId) <= MOST) return [];
    const own = catalogue.every().filter((node) => node.session_id === sessionId && !isRedirect(node));
    return chooseOldPairs(own, { isWaiting: (node) => model !== null && isWaitingDraft(node, clock.now()) });
  }

  async function fold(sessionId: string): Promise<void> {
    if (getFolds(sessionId).length === 0) return;
    await store.exclusive(async (store) => {
      await store.refresh();
      const at = new Date(clock.now()).toISOString();
      const merged = getFolds(sessionId).flatMap((each) => {
        const [older, newer] = each;
        return mergedNodes(older, [newer], { text: mergePairText(each), author: { by: 'rules' }, at });
      });
      await store.save(merged);
    });
  }

  return {
    enforce(sessionId) {
      void taskQueue.run('indexer', () => serial(() => fold(sessionId)));
    },
  };
}

/** Nodes that a session may have before older ones are folded, and how many are left then. */
const MOST = 200;
const LEFT = 150;
/** The newest stay as they are. */
const NEWEST = 100;
const SUMMARY_CHARS = 2_000;
const TRIGGER_CHARS = 300;

/** Two nodes that follow each other in their session; the newer one goes into the older one. */
type OldPair = readonly [older: MemoryNode, newer: MemoryNode];

/**
 * Which nodes of one session are folded, none twice: neighbours of one origin with the fewest turns first, so that what
 * is old gets coarser evenly. Decisions, what is always shown and what a person wrote are never among them.
 */
export function chooseOldPairs(nodes: readonly MemoryNode[], rule: Pick<MergeRule, 'isWaiting'>): readonly OldPair[] {
  const own = nodes.filter((node) => !isGroup(node) && !isBundled(node) && node.kind !== 'tool' && !isFromText(node));
  if (own.length <= MOST) return [];
  const older = own.toSorted(byAge).slice(0, -NEWEST);
  const mergeable = older.filter((node) => mayMergeOld(node, rule));
  const pairs = [...grouped(mergeable, ({ origin, project }) => `${origin} ${project}`).values()].flatMap((run) =>
    run.slice(1).map((newer, at): OldPair => [run[at] ?? newer, newer]),
  );
  const folds: OldPair[] = [];
  const taken = new Set<MemoryNode>();
  for (const [one, other] of pairs.toSorted((a, b) => getTurns(a) - getTurns(b))) {
    if (own.length - folds.length <= LEFT) break;
    if (taken.has(one) || taken.has(other) || contradicts(one, other)) continue;
    taken.add(one).add(other);
    folds.push([one, other]);
  }
  return folds;
}

/** What both say, and no more than one node may. */
export function mergePairText([older, newer]: OldPair): Pick<MemoryNode, 'summary' | 'trigger'> {
  return {
    summary: getBoth(trimEnd(older.summary, '.; \n'), newer.summary, '; ', SUMMARY_CHARS),
    trigger: getBoth(older.trigger, newer.trigger, ' ', TRIGGER_CHARS),
  };
}

/** What is shorter than its half leaves the rest to the other. */
function getBoth(one: string, other: string, between: string, most: number): string {
  if (one === '' || other === '' || one === other) return clip(one || other, most);
  const room = most - between.length;
  const first = clip(one, Math.max(Math.floor(room / 2), room - other.length));
  return `${first}${between}${clip(other, room - first.length)}`;
}

function mayMergeOld(node: MemoryNode, rule: Pick<MergeRule, 'isWaiting'>): boolean {
  const isDecision = node.importance === 'HIGH' && isCleanOrigin(node.origin);
  return (
    isSettled(node, rule) &&
    node.parent_node_id === null &&
    node.recall_mode === 'active' &&
    !isUsers(node) &&
    !isDecision &&
    // Together with one that is held back the other would be held back too; let go, it would let the other go.
    node.released !== true &&
    !isQuarantined(node) &&
    !node.facts.some(isClosed)
  );
}

const getTurns = (fold: OldPair): number => fold.reduce((sum, { turns }) => sum + turns.length, 0);
