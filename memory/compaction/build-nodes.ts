import { createHash } from 'node:crypto';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import { withoutToolOutput } from '../ingest/turn-trust.ts';
import type { Claim } from '../model/claim.ts';
import { contentDigest } from '../model/content-hash.ts';
import { formatFileLink, latestMarks } from '../model/file-link.ts';
import type { Fact, MemoryNode } from '../model/node.ts';
import { type Author, isDraft } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { ProposedNode } from '../models/language-model.ts';
import type { IndexRow } from '../search/search-index.ts';
import type { StoredBrief } from '../storage/node-files.ts';
import { actionsOf, capsuleOf, urlsOf } from '../text/actions.ts';
import { atMost, modalityOf } from '../text/content-type.ts';
import { contentTags, flagsOf } from '../text/system-tags.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import { attributedOrigin } from './attribution.ts';
import { attributeBrief, type SourcedClaim } from './brief.ts';
import type { CompactionReason } from './compaction.ts';

const ROW_CHARS = 40_000;
const CALL_CHARS = 200;
const CALLS = 20;

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
  const texts = [draft.summary, draft.trigger, ...draft.facts.map((fact) => `${fact.concept}: ${fact.value}`)];
  const grounded = texts.map((text) => attributedOrigin(text, draft.turns, shown));
  const origin = draft.origin ?? lowestOrigin([...grounded, ...own.map((turn) => turn.origin)]);
  const turns = own.map((turn) => turn.turnId);
  const now = new Date(assembly.nowMs).toISOString();
  const entire = whole.filter((turn) => draft.turns.includes(turn.turnId));
  const actions = actionsOf(entire);
  const modality = modalityOf(entire);
  // External actions may not appear in a node of trusted origin.
  const told = actions.filter((action) => isCleanOrigin(action.origin) || !isCleanOrigin(origin));
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
    topic_tags: [...contentTags(draft.topic_tags), ...flagsOf(entire, actions)],
    importance: atMost(draft.importance, modality),
    summary: draft.summary,
    detailed_summary: null,
    trigger: draft.trigger,
    parent_node_id: null,
    links: [],
    source_links: [...latestMarks(own.flatMap(({ files }) => files ?? [])).map(formatFileLink), ...urlsOf(entire)],
    capsule: capsuleOf(told),
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
      origin: attributedOrigin(fact.value, fact.evidence, shown),
    })),
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
  const originOf = (claim: Claim) => {
    const same = former.find((each) => each.text === claim.text);
    return same?.origin ?? attributedOrigin(claim.text, claim.sources, shown);
  };
  return {
    session_id: assembly.sessionId,
    project: assembly.project,
    updated_at: new Date(assembly.nowMs).toISOString(),
    ...attributeBrief(brief, originOf),
  };
}

function asTurns({ text, sources, origin }: SourcedClaim): TurnText[] {
  const parts = [{ kind: 'assistant' as const, origin, tool: '', text }];
  return sources.map((turnId) => ({ turnId, atMs: 0, origin, user: '', parts }));
}

export interface NodeTexts {
  readonly turns: ReadonlyMap<string, TurnText>;
  /** For each turn its session, and how many turns came before it there. */
  readonly positions: ReadonlyMap<string, { readonly sessionId: string; readonly position: number }>;
}

/** Of a session; a place is a whole number that a float holds. */
const MOST_TURNS = 2 ** 20;
const EMPTY_ROW = { turnId: '', digest: '', trigger: '', place: null, sources: [] } as const;

/** Index rows of a node: itself, its turns, its facts. */
export function rowsOf(node: MemoryNode, { turns, positions }: NodeTexts): IndexRow[] {
  const shared = { ...EMPTY_ROW, nodeId: node.node_id, sessionId: node.session_id, project: node.project };
  const facts = node.facts.map(factText);
  const atMs = Date.parse(node.valid_from);
  const text = [
    node.summary,
    node.trigger,
    contentTags(node.topic_tags).join(' '),
    ...facts,
    node.detailed_summary ?? '',
  ]
    .join('\n')
    .trimEnd();
  const own: IndexRow = {
    ...shared,
    ...{ kind: 'node', origin: node.origin, atMs, digest: contentDigest(node) },
    ...{ text, embedded: node.summary, trigger: node.trigger },
  };
  const turnRows = node.turns.flatMap((turnId): IndexRow[] => {
    const turn = turns.get(turnId);
    const said = turn === undefined ? '' : spokenText(turn);
    if (turn === undefined || said === '') return [];
    const { origin } = withoutToolOutput(turn);
    const place = placeIn(positions.get(turnId));
    return [{ ...shared, ...place, kind: 'turn', turnId, origin, atMs: turn.atMs, text: said, embedded: said }];
  });
  // Facts of a draft repeat sentences of its turns: indexing them twice would crowd out other results.
  const stated = isDraft(node) ? [] : node.facts;
  const factRows = stated.map(({ evidence: sources }, at): IndexRow => {
    const fact = facts[at] as string;
    const saidAtMs = turns.get(sources[0] ?? '')?.atMs ?? atMs;
    return { ...shared, kind: 'fact', origin: node.origin, atMs: saidAtMs, sources, text: fact, embedded: fact };
  });
  return [own, ...turnRows, ...factRows];
}

/** Places of two sessions of a project are far apart, whatever their lengths. */
function placeIn(known: { readonly sessionId: string; readonly position: number } | undefined) {
  if (known === undefined) return {};
  const { sessionId, position } = known;
  const session = createHash('sha256').update(sessionId).digest().readUInt32BE();
  return { sessionId, place: session * MOST_TURNS + position };
}

/** Omits the concept when the value starts with it. */
function factText({ concept, value }: Fact): string {
  return startsWith(uniqueTokens(value), uniqueTokens(concept)) ? value : `${concept}: ${value}`;
}

function startsWith(tokens: readonly string[], first: readonly string[]): boolean {
  return first.every((token, at) => tokens[at] === token);
}

/** User text, assistant text and tool calls; tool output is not indexed. */
export function spokenText(turn: TurnText): string {
  const said = turn.parts.filter((part) => part.kind === 'assistant').map((part) => part.text);
  const calls = turn.parts
    .filter((part) => part.kind === 'tool_use')
    .slice(0, CALLS)
    .map((part) => `${part.tool} ${part.text.slice(0, CALL_CHARS)}`);
  return [turn.user, ...said, ...calls]
    .filter((text) => text !== '')
    .join('\n')
    .slice(0, ROW_CHARS);
}
