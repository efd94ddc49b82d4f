import { isCleanOrigin, lowestOrigin, type Origin } from '../../common/turn.ts';
import type { Author, Claim, Fact, MemoryNode, StoredBrief } from '../model/node.ts';
import { DIALOGS, formatFileLink, latestMarks, type TurnText } from '../model/turn.ts';
import type { ProposedNode } from '../models/model.ts';
import { getActions, getCapsule, getUrls } from '../text/actions.ts';
import { atMost, getModality } from '../text/content-type.ts';
import { repeatsShown } from '../text/repetition.ts';
import { splitSentences } from '../text/sentences.ts';
import { contentTags, getFlags, proposedTags } from '../text/tags.ts';
import { attributedOrigin } from './attribution.ts';
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

function buildNode(proposed: ProposedNode, { shown, whole = shown, ...assembly }: NodeSource): MemoryNode {
  const own = shown.filter((turn) => proposed.turns.includes(turn.turnId));
  const draft = proposed.origin === undefined ? withGrounds(proposed, shown) : proposed;
  const { origin = 'external' } = draft;
  const turns = own.map((turn) => turn.turnId);
  const now = new Date(assembly.nowMs).toISOString();
  const entire = whole.filter((turn) => draft.turns.includes(turn.turnId));
  const actions = getActions(entire);
  const modality = getModality(entire);
  // External actions may not appear in a node of trusted origin.
  const ownActions = actions.filter(
    (action) => !isCleanOrigin(origin) || (isCleanOrigin(action.origin) && !repeatsShown(action.subject, entire)),
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

/**
 * A model's draft with its origin. Sentences that neither the user nor the assistant said become facts, which have origins
 * of their own, where most others were said.
 */
function withGrounds(draft: ProposedNode, shown: readonly TurnText[]): ProposedNode {
  const { title = '', outcome = '', summary, turns } = draft;
  const getOrigin = (text: string): Origin => attributedOrigin(text, turns, shown);
  const getLowest = (...texts: readonly string[]): Origin =>
    lowestOrigin(texts.filter((text) => text !== '').map(getOrigin));
  const [said, told] = [summary, outcome].map((text) =>
    separate(text, (sentence) => isCleanOrigin(getOrigin(sentence))),
  );
  const origin = getLowest(title, said?.kept ?? '', told?.kept ?? '');
  if (said === undefined || told === undefined || !isCleanOrigin(origin))
    return { ...draft, origin: getLowest(title, summary, outcome, draft.trigger) };
  const others = [...new Set([...said.others, ...told.others])].map(
    (value): Fact => ({
      concept: title || 'result',
      value,
      polarity: 'positive',
      evidence: [...turns],
      bucket: 'episode',
    }),
  );
  return { ...draft, origin, summary: said.kept, outcome: told.kept, facts: [...draft.facts, ...others] };
}

function separate(text: string, isSaid: (sentence: string) => boolean) {
  const sentences = splitSentences(text);
  const said = sentences.filter(isSaid);
  if (2 * said.length < sentences.length) return { kept: text, others: [] };
  return { kept: said.join(' '), others: sentences.filter((sentence) => !said.includes(sentence)) };
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

/** Claims of the old brief count as turns of their former origin. */
export function buildBrief(
  brief: { readonly active: readonly Claim[]; readonly hints: readonly Claim[] },
  assembly: Pick<NodeSource, 'sessionId' | 'project' | 'nowMs' | 'shown'> & { readonly old: StoredBrief | null },
): StoredBrief {
  const { old } = assembly;
  const former = old === null ? [] : [...old.active, ...old.hints];
  const shown = [...assembly.shown, ...former.flatMap(asTurns)];
  const getOrigin = (claim: Claim) => {
    const same = former.find((each) => each.text === claim.text);
    return same?.origin ?? attributedOrigin(claim.text, claim.sources, shown);
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
