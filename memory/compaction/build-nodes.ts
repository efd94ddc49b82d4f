import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { Author, Claim, MemoryNode, StoredBrief } from '../model/node.ts';
import { DIALOGS, formatFileLink, latestMarks, type TurnText } from '../model/turn.ts';
import type { ProposedNode } from '../models/model.ts';
import { getActions, getCapsule, getUrls } from '../text/actions.ts';
import { atMost, getModality } from '../text/content-type.ts';
import { repeatedOrigin } from '../text/repetition.ts';
import { contentTags, getFlags, proposedTags } from '../text/tags.ts';
import { attributedOrigin, namesOutside } from './attribution.ts';
import { attributeBrief, type SourcedClaim } from './brief.ts';
import type { CompactionReason } from './compaction.ts';

export interface NodeSource {
  readonly sessionId: string;
  readonly project: string;
  readonly reason: CompactionReason;
  readonly kind: 'turn' | 'tool' | 'document' | 'note';
  readonly author: Author;
  /** `current` where it is not given. */
  readonly status?: 'draft' | 'current';
  readonly nowMs: number;
  /** Turns the writer saw, oldest first. */
  readonly shown: readonly TurnText[];
  /** The same turns with tool traffic, if the writer did not see it. */
  readonly whole?: readonly TurnText[];
  readonly newId: () => string;
}

/** Only nodes of trusted origin may be recalled passively. */
export function buildNodes(drafts: readonly ProposedNode[], assembly: NodeSource): MemoryNode[] {
  return drafts.map((draft) => buildNode(draft, assembly));
}

function buildNode(draft: ProposedNode, { shown, whole = shown, ...assembly }: NodeSource): MemoryNode {
  const own = shown.filter((turn) => draft.turns.includes(turn.turnId));
  const { title = '', outcome = '', summary, trigger, facts } = draft;
  const getOrigin = (text: string): Origin => attributedOrigin(text, draft.turns, shown);
  const stated = [title, outcome, summary, ...facts.map(({ concept, value }) => `${concept}: ${value}`)];
  const origins = stated.filter((text) => text !== '').map(getOrigin);
  // A trigger, which no line shows, has words of the writer's own.
  if (getOrigin(trigger) === 'external' && namesOutside(trigger, shown)) origins.push('external');
  const origin = draft.origin ?? lowestOrigin(origins);
  const title_origin = title === '' || isCleanOrigin(origin) ? origin : getOrigin(title);
  const turns = own.map((turn) => turn.turnId);
  const now = new Date(assembly.nowMs).toISOString();
  const entire = whole.filter((turn) => draft.turns.includes(turn.turnId));
  const actions = getActions(entire);
  const modality = getModality(entire);
  // External actions may not appear in a node of trusted origin.
  const ownActions = actions.filter(
    (action) => !isCleanOrigin(origin) || isCleanOrigin(repeatedOrigin(action.subject, entire, action.origin)),
  );
  return {
    kind: assembly.kind,
    author: assembly.author,
    status: assembly.status ?? 'current',
    node_id: assembly.newId(),
    session_id: assembly.sessionId,
    project: assembly.project,
    depth_level: 1,
    recall_mode: isCleanOrigin(origin) ? draft.recall_mode : 'active',
    modality,
    topic_tags: [
      ...contentTags(draft.topic_tags),
      ...new Set([...getFlags(entire, actions), ...(isCleanOrigin(origin) ? proposedTags(draft.topic_tags) : [])]),
    ],
    importance: atMost(draft.importance, modality),
    summary: draft.summary,
    ...getShape(draft, shown),
    detailed_summary: null,
    trigger: draft.trigger,
    parent_node_id: null,
    links: [],
    source_links: [...latestMarks(own.flatMap(({ files }) => files ?? [])).map(formatFileLink), ...getUrls(entire)],
    capsule: getCapsule(ownActions),
    origin,
    ...(title_origin === origin ? {} : { title_origin }),
    valid_from: new Date(own[0]?.atMs ?? assembly.nowMs).toISOString(),
    valid_to: null,
    superseded_by: null,
    compaction_reason: assembly.reason,
    created_at: now,
    turns,
    facts: draft.facts.map((fact) => ({
      ...fact,
      evidence: [...fact.evidence],
      origin: fact.origin ?? attributedOrigin(fact.value, fact.evidence, shown),
    })),
  };
}

/** What a model says of a turn has the origin that its words have there; of it, only what the user wrote is the user's. */
function getShape(
  { title, outcome, decisions = [], open = [], values = [] }: ProposedNode,
  turns: readonly TurnText[],
): Pick<MemoryNode, 'title' | 'outcome' | 'decisions' | 'open' | 'values'> {
  const dialogs = new Set(
    turns.flatMap((each) => (each.parts.some(({ tool }) => DIALOGS.has(tool)) ? each.turnId : [])),
  );
  const getOrigin = ({ text, turn, origin }: { text: string; turn: string; origin?: Origin }): Origin =>
    origin ?? attributedOrigin(text, [turn], turns);
  return {
    ...(title === undefined || title === '' ? {} : { title }),
    ...(outcome === undefined || outcome === '' ? {} : { outcome }),
    ...(decisions.length === 0
      ? {}
      : {
          decisions: decisions.map((each) => {
            const origin = getOrigin(each);
            const isUsers = origin === 'user' || (each.origin !== undefined && !dialogs.has(each.turn));
            return { ...each, origin, by: isUsers ? each.by : 'assistant' };
          }),
        }),
    ...(open.length === 0 ? {} : { open: open.map((each) => ({ ...each, origin: getOrigin(each) })) }),
    ...(values.length === 0 ? {} : { values: [...values] }),
  };
}

/** `former`, claims of old briefs, count as turns of their former origin. */
export function buildBrief(
  brief: { readonly active: readonly Claim[]; readonly hints: readonly Claim[] },
  assembly: Pick<NodeSource, 'sessionId' | 'project' | 'nowMs' | 'shown'> & {
    readonly former: readonly SourcedClaim[];
  },
): StoredBrief {
  const { former } = assembly;
  const shown = [...assembly.shown, ...former.flatMap(asTurns)];
  const getOrigin = (claim: Claim) => {
    const same = former.find((each) => each.text === claim.text);
    return claim.origin ?? same?.origin ?? attributedOrigin(claim.text, claim.sources, shown);
  };
  return {
    session_id: assembly.sessionId,
    project: assembly.project,
    updated_at: new Date(assembly.nowMs).toISOString(),
    ...attributeBrief(brief, getOrigin),
  };
}

function asTurns({ text, sources, origin }: SourcedClaim): TurnText[] {
  const parts = [{ kind: 'assistant' as const, origin, tool: '', text }];
  return sources.map((turnId) => ({ turnId, atMs: 0, origin, user: '', parts }));
}
