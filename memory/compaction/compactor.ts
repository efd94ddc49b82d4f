import { setImmediate as nextTick } from 'node:timers/promises';
import { memoize } from '../../common/map.ts';
import { clip, oneLine, withoutQuotations } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import type { Ontology } from '../facts/ontology.ts';
import type { ServiceParts } from '../ingest/parts.ts';
import { type Claim, type Decision, getAuthor, type MemoryNode, nodeId, type StatedItem } from '../model/node.ts';
import { taskId } from '../model/task.ts';
import { type TurnText, withoutToolOutput } from '../model/turn.ts';
import type { KnownStatement, LanguageModel, ProposedNode, SummaryInput, SummaryResult } from '../models/model.ts';
import { findTaskStatements } from '../tasks/statement.ts';
import type { Tasks } from '../tasks/tasks.ts';
import { type Action, getActions, getSubject } from '../text/actions.ts';
import { isNearDuplicate, sharedWords } from '../text/paraphrase.ts';
import { repeatedOrigin } from '../text/repetition.ts';
import { split } from '../text/sentences.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import { attributedOrigin, flat } from './attribution.ts';
import { withSpareClaims } from './brief.ts';
import { buildBrief, buildNodes, type NodeSource } from './build-nodes.ts';
import type { Linker } from './linker.ts';
import { createModelBriefs } from './model-brief.ts';
import type { Revisions } from './supersede.ts';
import { readTurnState } from './turn-state.ts';

/** Limits the number of nodes per session. */
export interface NodeLimit {
  /** Runs in the background. */
  enforce(sessionId: string): void;
}

export interface Batch extends Pick<NodeSource, 'sessionId' | 'project' | 'reason'> {
  /** Whole turns, oldest first. */
  readonly turns: readonly TurnText[];
  /** The turn of the session before the first of these. */
  readonly before?: TurnText | undefined;
  /** For imported turns: time and links of the nodes to write. */
  readonly past?: { readonly atMs: number; readonly links: readonly string[] };
}

type ProposedDecision = NonNullable<ProposedNode['decisions']>[number];
type ProposedOpen = NonNullable<ProposedNode['open']>[number];
type Briefing = Pick<SummaryResult, 'brief'>;

export type CompactorParts = Pick<
  ServiceParts,
  'nodeFiles' | 'local' | 'clock' | 'randomHex' | 'catalogue' | 'turnRegistry' | 'store' | 'log'
> & {
  readonly revisions: Revisions;
  readonly linker: Linker;
  readonly nodeLimit: NodeLimit;
  readonly facts: { getOntology(project: string): Ontology | null };
  readonly tasks: Pick<Tasks, 'active' | 'takeStatement'>;
  readonly readState: (nodes: readonly MemoryNode[]) => Readonly<Record<'open' | 'decided', readonly StateItem[]>>;
};

type StateItem = Pick<StatedItem, 'text' | 'origin'> & { readonly node: MemoryNode };

const NEVER_ABORTS = new AbortController().signal;

/** Turns batches into nodes and briefs. */
export type Compactor = ReturnType<typeof createCompactor>;

export function createCompactor(parts: CompactorParts) {
  const { local, clock, catalogue, store, revisions, linker, nodeLimit, facts } = parts;

  const getInput = (batch: Batch, claims: readonly Claim[]) => toInput(batch, claims, catalogue.tags(batch.project));
  const briefs = createModelBriefs(parts);

  const locally = async (batch: Batch, claims?: readonly Claim[]): Promise<SummaryResult> =>
    local.summarize(getInput(withoutTools(batch), claims ?? (await briefs.read(batch))), NEVER_ABORTS);

  function newId(atMs = clock.now()): string {
    for (;;) {
      const id = nodeId(atMs, parts.randomHex());
      if (catalogue.get(id) === undefined) return id;
    }
  }

  const buildBatchNodes = (result: SummaryResult, batch: Batch, model: string | null): readonly MemoryNode[] =>
    getNodes(result, batch, model, { nowMs: clock.now(), newId });

  /** @param spare  of the rules, for what the brief says in no claim of clean origin */
  async function writeBrief(result: Briefing, batch: Batch, spare: Briefing | null): Promise<void> {
    const isStored = isNewest(batch, catalogue.all(), clock.now());
    if (!isStored && (spare === null || !isNext(batch, parts))) return;
    const own = { former: await briefs.readAll(batch.sessionId), nowMs: batch.past?.atMs ?? clock.now() };
    const build = ({ brief }: Briefing, shown: Batch) => buildBrief(brief, { ...shown, ...own, shown: shown.turns });
    const brief = build(result, batch);
    if (!isStored) await briefs.keep(brief, batch);
    else if (spare === null) await briefs.write(brief);
    else await briefs.write(withSpareClaims(brief, build(spare, withoutTools(batch))), { brief, batch });
  }

  return {
    /**
     * Writes rule-made drafts for batches of one session together with their children, in one save; durable and
     * searchable when resolved. Turns that leave nothing to remember count as covered without a node. Returns the brief
     * after the last batch without writing it.
     * @throws when the save fails
     */
    async draftNodes(
      batches: readonly Batch[],
      getChildren: (nodes: readonly MemoryNode[]) => readonly MemoryNode[],
    ): Promise<Briefing & { readonly nodes: readonly MemoryNode[] }> {
      const nodes: MemoryNode[] = [];
      let brief: Briefing['brief'] = { active: [], hints: [] };
      const skipped: string[] = [];
      for (const [at, batch] of batches.entries()) {
        if (at > 0) await nextTick();
        const claims = at === 0 ? undefined : [...brief.active, ...brief.hints];
        const result = await locally({ ...batch, before: batch.before ?? batches[at - 1]?.turns.at(-1) }, claims);
        skipped.push(...(result.skipped ?? []));
        nodes.push(...buildBatchNodes(result, batch, null));
        brief = result.brief;
      }
      return store.exclusive(async (store) => {
        const all = await revisions.apply(nodes);
        const own = all.slice(0, nodes.length);
        await store.save(
          [...all, ...getChildren(own)],
          batches.flatMap((batch) => batch.turns),
        );
        await store.dismiss(skipped);
        linker.link(own);
        for (const { sessionId } of batches.slice(0, 1)) nodeLimit.enforce(sessionId);
        return { nodes: own, brief };
      });
    },
    /** Writes one node for finished tool rounds of a running turn; durable and searchable when resolved. */
    async bundle({ sessionId, project, reason, turns: shown }: Batch, prompt: string): Promise<void> {
      const drafts = shown.map((part) => bundleDraft(part, prompt));
      const assembly = { kind: 'tool', author: getAuthor(null), sessionId, project, reason, shown, newId } as const;
      await store.save(buildNodes(drafts, { ...assembly, nowMs: clock.now() }), shown);
    },
    /** Fills turns that the model's answer omits with rule-made nodes. */
    async summarize(model: LanguageModel, batch: Batch, signal: AbortSignal): Promise<SummaryResult> {
      const isLast = isNewest(batch, catalogue.all(), clock.now());
      const isBriefed = isLast || isNext(batch, parts);
      const own = getInput(batch, isBriefed ? await briefs.readModels(batch, isLast) : []);
      const known = { ...(await findKnown(batch, parts)), ...chooseOntology(batch, facts) };
      const result = await model.summarize({ ...own, ...known, brief: isBriefed ? own.brief : null }, signal);
      const decided = findDecided(batch);
      const skipped = (result.skipped ?? []).filter((turnId) => !decided.includes(turnId));
      const covered = new Set([...result.nodes.flatMap((node) => node.turns), ...skipped]);
      const missing = batch.turns.filter((turn) => !covered.has(turn.turnId));
      const nodes = ownNodes(result, batch);
      if (missing.length === 0) return { ...result, nodes, skipped };
      const filled = await locally({ ...batch, turns: missing });
      return { ...result, nodes: [...nodes, ...filled.nodes], skipped: [...skipped, ...(filled.skipped ?? [])] };
    },
    buildNodes: buildBatchNodes,
    /** Adds and changes tasks as these nodes of the batch say; imported turns are history and do not. Never rejects. */
    takeTasks: (nodes: readonly MemoryNode[], batch: Batch): Promise<void> => takeTasks(nodes, batch, parts),
    newId,
    /** Does nothing when a later batch of the session is compacted already. */
    writeBrief: async (result: Briefing, batch: Batch): Promise<void> =>
      writeBrief(result, batch, await locally(batch)),
    /** @param briefing  an earlier rule-made brief, to avoid computing it again */
    writeLocalBrief: async (batch: Batch, given?: Briefing): Promise<void> =>
      writeBrief(given ?? (await locally(batch)), withoutTools(batch), null),
  };
}

function toInput(
  { sessionId, turns, before }: Batch,
  briefClaims: readonly Claim[],
  knownTags: readonly string[],
): SummaryInput {
  const brief = briefClaims.map((claim) => `- ${claim.text}`).join('\n');
  return { sessionId, turns, before, knownTags, brief, briefClaims };
}

function getNodes(
  result: SummaryResult,
  batch: Batch,
  model: string | null,
  { nowMs: now, newId }: { readonly nowMs: number; readonly newId: (atMs: number) => string },
): readonly MemoryNode[] {
  const { sessionId, project, reason } = batch;
  const shown = model === null ? withoutTools(batch).turns : batch.turns;
  const writer = { kind: 'turn', author: getAuthor(model), status: model === null ? 'draft' : 'current' } as const;
  const { atMs: nowMs = now, links = [] } = batch.past ?? {};
  const assembly = { ...writer, sessionId, project, reason, nowMs, shown, whole: batch.turns };
  const nodes = buildNodes(result.nodes, { ...assembly, newId: () => newId(nowMs) });
  return nodes.map((node) => ({ ...node, source_links: [...node.source_links, ...links] }));
}

function ownNodes({ nodes }: SummaryResult, batch: Batch): ProposedNode[] {
  const inWords = inWordsOf(batch);
  const own = nodes.map(({ origin: _, decisions = [], open = [], ...node }): ProposedNode => {
    const turns = batch.turns.filter(({ turnId }) => node.turns.includes(turnId));
    const over = (node.revises ?? []).flatMap(closedBy(turns));
    return {
      ...node,
      decisions: [...decisions.map(quoted(batch)), ...over.flatMap(({ decisions }) => decisions ?? [])],
      open: [...open.flatMap(inWords), ...over.flatMap(({ open }) => open ?? [])],
      turns: turns.map(({ turnId }) => turnId),
    };
  });
  return own.filter(({ turns }) => turns.length > 0);
}

/** What the user says in fewer words says nothing without what it answers. */
const QUOTED_WORDS = 3;
const QUOTES = /["“]([^"”]{1,400})["”]/g;
const ENDS_QUOTED = /["”][.)]?$/;
/** A question that asks for something to be done. */
const ASKS_FOR = /^(?:(?:and|but|so|ok(?:ay)?|then|please)[\s,]+)*(?:can|can't|could|would|will) (?:you|we)\b/i;
const isNoQuestion = (text: string): boolean => !text.endsWith('?') || ASKS_FOR.test(text);
/** Share of words by which what the rules read is what a model says in words that the turn lacks. */
const SAME_ITEM = 0.5;

/** The turn of an item with the one before, and what the rules read in it. */
function findRead({ turns, before }: Batch, turnId: string) {
  const at = turns.findIndex((turn) => turn.turnId === turnId);
  const [turn, last] = [turns[at], turns[at - 1] ?? before];
  if (turn === undefined) return null;
  return { turn, around: last === undefined ? [turn] : [last, turn], state: readTurnState(turn, last) };
}

/**
 * What a model says, in words of the conversation, with what the user decided as a quotation. Otherwise the whole
 * sentence that it quotes, or, where it quotes nothing or a short reply, what the rules read there. Otherwise it is the
 * user's if it begins with all that the user typed; the rest may be from elsewhere, as its origin tells.
 */
function quoted(batch: Batch) {
  const used = new Set<Decision>();
  return (decision: ProposedDecision): ProposedDecision => {
    const { text, by, turn, bucket } = decision;
    const isQuoted = attributedOrigin(text, [turn], batch.turns) === 'user';
    const found =
      by === 'assistant' || (isQuoted && uniqueTokens(text).length >= QUOTED_WORDS) ? null : findRead(batch, turn);
    if (found === null) return decision;
    const user = found.turn.userOrigin === undefined ? withoutQuotations(found.turn.user) : '';
    const all = batch.before === undefined ? batch.turns : [batch.before, ...batch.turns];
    const ids = all.map(({ turnId }) => turnId);
    const origin = attributedOrigin(text, ids, all);
    const quotations = [...text.matchAll(QUOTES)].map(([, words = '']) => flat(words));
    const quote = quotations.find((words) => words !== '' && flat(user).includes(words)) ?? flat(text);
    const holds = (sentence: string): boolean => sentence.includes(quote) || quote.includes(sentence);
    const whole = split(user).filter((each) => isNoQuestion(each) && holds(flat(each)));
    const said = uniqueTokens(text.replace(QUOTES, ''));
    const isStated = quotations.includes(quote) && ENDS_QUOTED.test(text) && said.length >= QUOTED_WORDS;
    if (whole.length > 0 && isStated && isCleanOrigin(origin)) return { ...decision, origin };
    const isClause = uniqueTokens(quote).length >= QUOTED_WORDS && flat(user).includes(quote);
    if (whole.length > 0 && isClause) return { ...decision, text: whole.join(' ') };
    const read = found.state.decisions.find((each) => each.by === 'user' && !used.has(each));
    if (read !== undefined) {
      used.add(read);
      return { ...read, bucket };
    }
    const isReply = user !== '' && (text.startsWith(user) || quote === flat(user));
    return isReply ? { ...decision, origin } : decision;
  };
}

/** What the words of a model do not prove is told in those of the rules; a new task in the user's own, and once. */
function inWordsOf(batch: Batch) {
  const used = new Set<string>();
  return (item: ProposedOpen): ProposedOpen[] => {
    const isTask = item.bucket === 'task';
    const origin = attributedOrigin(item.text, [item.turn], batch.turns);
    const found = (isTask ? origin === 'user' : isCleanOrigin(origin)) ? null : findRead(batch, item.turn);
    if (found === null) return [item];
    const { user, userOrigin } = found.turn;
    const sentences = userOrigin === undefined ? split(user).filter(isNoQuestion) : [];
    const typed = sentences.map((text) => ({ text, turn: item.turn }));
    const read = isTask ? [...found.state.open.filter((each) => each.origin === 'user'), ...typed] : found.state.open;
    const isTold = ({ text }: ProposedOpen): boolean => uniqueTokens(text).length >= QUOTED_WORDS;
    const own = read.find((each) => isTold(each) && sharedWords(each.text, item.text) >= SAME_ITEM);
    if (own === undefined) return [item];
    const isNew = !used.has(own.text);
    used.add(own.text);
    return isNew ? [{ ...own, bucket: item.bucket }] : [];
  };
}

/**
 * Kept by the node that ends an open item or a decision, so that it counts again without that. In turns with external
 * text only an item that is not the user's ends, unless the user speaks of it there.
 */
function closedBy(turns: readonly TurnText[]) {
  const isClean = turns.every(({ origin }) => isCleanOrigin(origin));
  const said = new Set(turns.flatMap(({ user, userOrigin }) => (userOrigin === undefined ? uniqueTokens(user) : [])));
  return ({ kind, text, origin }: KnownStatement): Pick<ProposedNode, 'open' | 'decisions'>[] => {
    const words = uniqueTokens(text);
    const isSaid = words.filter((word) => said.has(word)).length >= SAME_ITEM * words.length;
    const mayEnd = isClean || isSaid || (kind === 'open' && origin !== 'user');
    const [last] = mayEnd ? turns.slice(-1) : [];
    if (last === undefined || kind === 'fact') return [];
    const at = new Date(last.atMs).toISOString();
    const item = { text, origin, turn: last.turnId, bucket: 'episode' };
    if (kind === 'open') return [{ open: [{ ...item, closed: { at, as: 'done' } }] }];
    const by = origin === 'user' ? 'user' : 'assistant';
    return [{ decisions: [{ ...item, by, closed: { at, as: 'dropped' } }] }];
  };
}

/** Turns in which the user decides something or has something to do; no model may skip them. */
function findDecided({ turns, before }: Batch): string[] {
  return turns.flatMap((turn, at) => {
    const { decisions, open, skip } = readTurnState(turn, turns[at - 1] ?? before);
    const isKept = decisions.some(({ by }) => by === 'user') || open.some(({ origin }) => origin === 'user');
    return isKept && skip === null && turn.userOrigin === undefined ? [turn.turnId] : [];
  });
}

/** Facts say what holds now, which imported turns do not. */
function chooseOntology({ project, past }: Batch, facts: CompactorParts['facts']): Pick<SummaryInput, 'ontology'> {
  const ontology = past === undefined ? facts.getOntology(project) : null;
  return ontology ? { ontology } : {};
}

async function takeTasks(nodes: readonly MemoryNode[], { turns, past }: Batch, { tasks, log }: CompactorParts) {
  if (past !== undefined) return;
  for (const statement of findTaskStatements(nodes, turns))
    await tasks.takeStatement(statement).catch((error: unknown) => log.warn('a task stays as it is', { error }));
}

const TASKS = 30;
/** Of each kind. */
const ITEMS = 12;

/** What these turns may end, and open tasks of the project; history says nothing of tasks. */
async function findKnown(
  { project, turns, past }: Batch,
  { revisions, tasks, catalogue, readState }: CompactorParts,
): Promise<Pick<SummaryInput, 'known' | 'tasks' | 'knownTags'>> {
  const active = past === undefined ? await tasks.active().catch(() => []) : [];
  const open = active
    .filter((task) => [project, ''].includes(task.project) && isCleanOrigin(task.origin))
    .slice(-TASKS)
    .map(({ name, title, trigger }) => ({ id: taskId(name), title, trigger }));
  // Tags of drafts are words of these turns, and a model would take them over.
  const tags = new Set(catalogue.all().flatMap((node) => (node.status === 'draft' ? [] : node.topic_tags)));
  const knownTags = catalogue.tags(project).filter((tag) => tags.has(tag));
  // Without drafts of these turns, which may say that an item is done.
  const isFormer = ({ project: its, turns: ids, valid_from: from }: MemoryNode): boolean =>
    its === project && Date.parse(from) < (turns[0]?.atMs ?? 0) && !turns.some(({ turnId }) => ids.includes(turnId));
  const state = readState(catalogue.all().filter(isFormer));
  const items = (['open', 'decided'] as const).flatMap((kind) =>
    state[kind]
      .filter(({ text, origin }) => origin !== 'external' && !open.some(({ title }) => isNearDuplicate(title, text)))
      .slice(0, ITEMS)
      .map(({ node, text, origin }) => ({ kind, text, origin, date: node.valid_from.slice(0, 10) })),
  );
  return { known: [...revisions.knownFacts(project, turns), ...items], tasks: open, knownTags };
}

function withoutTools(batch: Batch): Batch {
  const before = batch.before === undefined ? undefined : spokenTurn(batch.before);
  return { ...batch, before, turns: batch.turns.map(spokenTurn) };
}

const spokenTurn = memoize((turn: TurnText): TurnText => {
  const isEdit = ({ act, failed }: Action): boolean => act === 'EDIT' && !failed;
  return { ...withoutToolOutput(turn), ...(getActions([turn]).some(isEdit) ? { edited: true } : {}) };
});

/** A delayed batch must not replace a newer brief; what is dated after now was said before the clock was set back. */
function isNewest({ sessionId, turns }: Batch, nodes: readonly MemoryNode[], nowMs: number): boolean {
  const lastMs = turns.at(-1)?.atMs ?? 0;
  const isLater = (atMs: number): boolean => atMs > lastMs && atMs <= nowMs;
  return !nodes.some((node) => node.session_id === sessionId && isLater(Date.parse(node.valid_from)));
}

/** A model continues its brief although rules have told of later turns; of an import only the last one is needed. */
function isNext(batch: Batch, { catalogue, clock }: CompactorParts): boolean {
  const byModel = catalogue.all().filter(({ author }) => author.by === 'model');
  return batch.past === undefined && isNewest(batch, byModel, clock.now());
}

const SUMMARY_CHARS = 180;
const PROMPT_CHARS = 200;
const CALL_CHARS = 40;
const SAID_CHARS = 80;
const ADDED_CHARS = 300;

/** Lists what the user added, the calls, their subjects and the last assistant text, and no tool output. */
function bundleDraft(part: TurnText, prompt: string): ProposedNode {
  const calls = part.parts.filter((each) => each.kind === 'tool_use');
  const answer = part.parts.findLast((each) => each.kind === 'assistant' && each.text !== '');
  const named = [...new Set(calls.map(({ tool, text }) => `${tool} ${getSubject(text, CALL_CHARS)}`.trim()))];
  const words = answer === undefined ? '' : ` — ${clip(oneLine(answer.text), SAID_CHARS)}`;
  const count = `${calls.length} tool ${calls.length === 1 ? 'call' : 'calls'}`;
  const room = SUMMARY_CHARS - count.length - words.length - 2;
  const subjects = named.map((name) => name.replace(/^\S+ /, ''));
  const said = answer === undefined ? [] : [repeatedOrigin(answer.text, [part], answer.origin)];
  return {
    summary: `${addedBy(part)}${count}: ${clip(named.join('; '), room)}${words}`,
    trigger: getTrigger(prompt, subjects),
    topic_tags: [],
    importance: 'LOW',
    recall_mode: 'active',
    turns: [part.turnId],
    facts: [],
    origin: lowestOrigin([...calls.map(({ origin }) => origin), ...said, 'user']),
  };
}

/** Words that the turn took up while it ran are in no prompt. */
function addedBy({ queued = [] }: TurnText): string {
  return queued.length === 0 ? '' : `The user added “${clip(oneLine(queued.join(' ')), ADDED_CHARS)}”; `;
}

function getTrigger(prompt: string, subjects: readonly string[]): string {
  const called = clip(subjects.join(', '), SUMMARY_CHARS);
  if (prompt === '') return `When I need what a tool said about ${called}`;
  return `When I come back to “${clip(oneLine(prompt), PROMPT_CHARS)}”, or need what a tool said about ${called}`;
}
