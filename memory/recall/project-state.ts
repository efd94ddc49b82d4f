import { memoize } from '../../common/map.ts';
import { clip, compareText, localDay, neutralLine } from '../../common/text.ts';
import { isCleanOrigin, type Origin } from '../../common/turn.ts';
import type { TurnRegistry } from '../ingest/turn-registry.ts';
import { withPassedDates } from '../model/dates.ts';
import { getTitleOrigin, isBundled, isFromText, type MemoryNode } from '../model/node.ts';
import { getWords, isNearDuplicate, saySame } from '../text/paraphrase.ts';
import { asksUser, getValues, splitSentences } from '../text/sentences.ts';
import type { StateKind, StateQuery } from '../text/state-query.ts';
import { tokenize } from '../text/tokenizer.ts';
import { createSettled, findTakenBack, isClosed, isPast, type Report, readReport, toldBy } from '../text/validity.ts';
import { isQuarantined } from './quarantine.ts';
import type { KeptState, MemoryLine } from './types.ts';

export interface StateItem {
  readonly kind: StateKind;
  readonly node: MemoryNode;
  readonly text: string;
  readonly origin: Origin;
  /** Id of its turn; null for an outcome. */
  readonly turn: string | null;
}

export type ProjectState = ReturnType<typeof readProjectState>;

/** Nodes that are looked at; earlier ones are history. */
const NODES = 400;
const MOST = 24;
const LINE_CHARS = 320;
const TITLE_SEPARATOR = ' — ';

/** The item with the dates marked that have passed. */
export function atTime(nowMs: number): (item: StateItem) => StateItem {
  return (item) => ({ ...item, text: withPassedDates(item.text, nowMs) });
}

/** Tasks of the agent's own list, which come before what was said to be open. */
export interface TaskItems {
  readonly open: readonly StateItem[];
  /** Texts of tasks that are done or were deleted. */
  readonly done: readonly string[];
}

const NO_TASKS: TaskItems = { open: [], done: [] };

/** Without what was said in turns that the user went back behind. */
export function withoutAbandoned(nodes: readonly MemoryNode[], { areAbandoned }: Pick<TurnRegistry, 'areAbandoned'>) {
  const isKept = ({ turn }: { readonly turn: string }): boolean => !areAbandoned([turn]);
  return nodes.flatMap((node): MemoryNode[] => {
    if (node.turns.every((turn) => isKept({ turn }))) return [node];
    if (areAbandoned(node.turns)) return [];
    const [open, decisions] = [node.open?.filter(isKept), node.decisions?.filter(isKept)];
    return [{ ...node, open, decisions, facts: node.facts.filter(({ evidence }) => !areAbandoned(evidence)) }];
  });
}

/** Whether a node says a text only in turns that the user went back behind. */
export function isTakenBack(node: MemoryNode | undefined, text: string, turns: Pick<TurnRegistry, 'areAbandoned'>) {
  if (node === undefined) return false;
  const tells = ({ open = [], decisions = [], facts }: MemoryNode): boolean =>
    [...open, ...decisions, ...facts].some((each) => isNearDuplicate('value' in each ? each.value : each.text, text));
  const [kept] = withoutAbandoned([node], turns);
  return kept === undefined || (kept !== node && tells(node) && !tells(kept));
}

/** What stands, is decided and is left to do, newest first. @param nodes  of one project or session */
export function readProjectState(nodes: readonly MemoryNode[], tasks = NO_TASKS, most = MOST) {
  const newestFirst = nodes
    .filter(
      (node) => !isPast(node) && !isBundled(node) && (!isFromText(node) || isStated(node)) && !isQuarantined(node),
    )
    .toSorted((one, other) => compareText(other.valid_from, one.valid_from))
    .slice(0, NODES);
  // A model's node stands for many turns.
  const getNewest = (kind: 'open' | 'decided') => (node: MemoryNode) => {
    const at = ({ turn }: StateItem): number => node.turns.indexOf(turn ?? '');
    return getItems(kind)(node).toSorted((one, other) => at(other) - at(one));
  };
  const openItems = newestFirst.flatMap(getNewest('open'));
  const isOver = findSettled(newestFirst);
  const isDone = findClosed(newestFirst, 'open');
  const isDropped = findClosed(newestFirst, 'decisions');
  const isSettled = (item: StateItem) => isOver(item) || tasks.done.some((text) => isNearDuplicate(text, item.text));
  const isLeft = (item: StateItem) => !isDone(item) && (tasks.open.includes(item) || !isSettled(item));
  const open = distinct([...tasks.open, ...openItems], most, isLeft);
  const decided = distinct(newestFirst.flatMap(getNewest('decided')), most, (item) => !isDropped(item));
  const ended = newestFirst.flatMap((node) => [...getItems('open', true)(node), ...getItems('decided', true)(node)]);
  const isAgain = ({ text }: StateItem) => [...open, ...decided].some((item) => isNearDuplicate(item.text, text));
  return {
    open,
    decided,
    outcome: distinct(newestFirst.flatMap(getOutcome), most),
    /** Items that were open and are done or answered, and all that the user or a model ended. */
    settled: [...openItems.slice(0, MOST).filter(isSettled), ...ended.slice(0, MOST).filter((item) => !isAgain(item))],
  };
}

/** `- [mem_…] 2026-03-01 open (user): text` */
export function stateLine({ kind, node, text, origin }: StateItem, maxChars = LINE_CHARS): MemoryLine {
  const head = `- [${node.node_id}] ${localDay(node.valid_from)} ${kind} (${origin}): `;
  return { nodeId: node.node_id, origin, text: `${head}${neutralLine(text, maxChars)}` };
}

const TITLE_CHARS = 70;
const SHORT_CHARS = 110;
/** Of a decision, the user's words behind what they decide. */
const QUOTED_END = /^(.{20,300}?): ["“].{1,400}$/s;

/** Its text in a short line: a model's title names what a node is about, and not what came of it. */
function shorten({ kind, node, text, origin }: StateItem): Pick<StateItem, 'text' | 'origin'> {
  const { title = '', outcome = '', author } = node;
  if (kind !== 'outcome') return { text: text.length > SHORT_CHARS ? text.replace(QUOTED_END, '$1') : text, origin };
  if (author.by === 'model' && outcome !== '' && isCleanOrigin(node.origin)) return { text: outcome, origin };
  return { text: clip(title || text, TITLE_CHARS), origin: getTitleOrigin(node) };
}

export const getShortOrigin = (item: StateItem): Origin => shorten(item).origin;

/** The same without what its id tells, and of an outcome the title or the outcome only. */
export function shortStateLine(item: StateItem): MemoryLine {
  const { kind, node } = item;
  const { text, origin } = shorten(item);
  return {
    nodeId: node.node_id,
    origin,
    text: `- [${node.node_id}] ${kind === 'outcome' ? 'done' : kind}: ${neutralLine(text, SHORT_CHARS)}`,
  };
}

/** What a conversation may not lose when the turns of the node are cut from it; undefined where there is nothing. */
export function keptState(node: MemoryNode): KeptState | undefined {
  const mayShow = ({ origin }: StateItem): boolean => isCleanOrigin(origin) || !isQuarantined(node);
  const items = [...getItems('decided')(node), ...getItems('open')(node)].filter(mayShow);
  const named = new Set(items.flatMap(({ text }) => getValues(text)));
  const values = isQuarantined(node) ? [] : (node.values ?? []);
  const left = values.filter((value) => !named.has(value)).map((value) => neutralLine(value, Number.MAX_SAFE_INTEGER));
  if (items.length + left.length === 0) return undefined;
  const getLines = (kind: StateKind): string[] =>
    items.filter((item) => item.kind === kind).map((item) => stateLine(item, Number.MAX_SAFE_INTEGER).text);
  return { decisions: getLines('decided'), open: getLines('open'), values: [...new Set(left)] };
}

/** Those that count, or those that were ended. */
function getItems(kind: 'open' | 'decided', isEnded = false): (node: MemoryNode) => StateItem[] {
  return (node) => {
    const isOver = toldBy(node.facts.filter(isClosed));
    return ((kind === 'open' ? node.open : node.decisions) ?? [])
      .filter(({ text, closed }) => (closed !== undefined) === isEnded && !isOver(text))
      .map(({ text, origin, turn }) => ({ kind, node, text, origin, turn }));
  };
}

/** A note is a text like a document, unless the user noted an open item or a decision. */
const isStated = ({ open = [], decisions = [] }: MemoryNode): boolean => open.length + decisions.length > 0;

/** How the user or a model said that an item is over, in whatever memory of before that it stands. */
function findClosed(nodes: readonly MemoryNode[], list: 'open' | 'decisions') {
  const over = nodes
    .flatMap((node) => node[list] ?? [])
    .flatMap(({ text, closed }) => (closed === undefined ? [] : [{ text, closed }]));
  const takenBack = nodes.flatMap(({ decisions = [], valid_from: at }) =>
    decisions
      .flatMap(({ text }) => findTakenBack(text) ?? [])
      .map((text) => ({ text, closed: { at, as: 'dropped' as const } })),
  );
  return ({ node, text }: Pick<StateItem, 'node' | 'text'>) =>
    [...over, ...takenBack].find(
      (each) => compareText(node.valid_from, each.closed.at) <= 0 && isNearDuplicate(each.text, text),
    )?.closed;
}

/** The memory with the marks of what others say is over. @param nodes  of its project */
export function withClosed<T extends MemoryNode>(node: T, nodes: readonly MemoryNode[]): T {
  const others = nodes.filter((each) => !isPast(each) && !isQuarantined(each));
  const mark = (list: 'open' | 'decisions') => {
    const getEnd = findClosed(others, list);
    return node[list]?.map((item) => ({ ...item, closed: item.closed ?? getEnd({ node, text: item.text }) }));
  };
  return { ...node, open: mark('open'), decisions: mark('decisions') };
}

function getOutcome(node: MemoryNode): StateItem[] {
  const { title = '', origin } = node;
  // What was asked last stands in front of it.
  const outcome = (node.outcome ?? '').replace(/^(Corrected since: )?“[^”]{1,100}” → /, '$1');
  if (outcome === '') return [];
  const text = title === '' || outcome.startsWith(title) ? outcome : `${title}${TITLE_SEPARATOR}${outcome}`;
  return [{ kind: 'outcome', node, text: clip(text, LINE_CHARS), origin, turn: null }];
}

/** The newest, without what repeats a newer one. */
function distinct(items: readonly StateItem[], most: number, isWanted: (item: StateItem) => boolean = () => true) {
  const kept = new Map<StateItem, ReadonlySet<string>>();
  for (const item of items) {
    if (kept.size === most) break;
    const words = getWords(item.text);
    if ([...kept.values()].some((others) => saySame(others, words)) || !isWanted(item)) continue;
    kept.set(item, words);
  }
  return [...kept.keys()];
}

/** Whether an open item is done or answered by what came later. @param newestFirst  nodes of all sessions */
function findSettled(newestFirst: readonly MemoryNode[]): (item: StateItem) => boolean {
  const lastOf = new Map<string, MemoryNode>();
  for (const node of newestFirst) if (!lastOf.has(node.session_id)) lastOf.set(node.session_id, node);
  const reports = newestFirst.map(findReports);
  return ({ node, text, turn }) => {
    // The user went on, so a question was answered or is moot.
    if (asksUser(text)) return lastOf.get(node.session_id) !== node || turn !== (node.turns.at(-1) ?? turn);
    return reports.slice(0, newestFirst.indexOf(node)).flat().some(createSettled(text));
  };
}

/** Of each sentence that says that something is done, or what somebody says. */
const findReports = memoize(({ title = '', outcome = '', summary, open = [] }: MemoryNode): readonly Report[] => {
  const left = new Set(open.map(({ text }) => text));
  const sentences = [title, ...splitSentences(outcome), ...splitSentences(summary.replaceAll('; ', '. '))];
  return [...new Set(sentences)].flatMap((text) => (left.has(text) ? [] : (readReport(text) ?? [])));
});

/** Of each kind that is asked for, and of the others that tell where the work stands. */
const SHOWN: Readonly<Record<StateKind, Readonly<Record<StateKind, number>>>> = {
  outcome: { outcome: 3, open: 6, decided: 3 },
  open: { open: 8, outcome: 1, decided: 0 },
  decided: { decided: 8, open: 0, outcome: 2 },
};

/** Of the words that a question is about. */
const ABOUT_SHARE = 0.6;

/** The items that answer, weightiest kind first and newest first within a kind; empty where nothing fits. */
export function answerStateQuery({ wants, about, beside = [] }: StateQuery, state: ProjectState): StateItem[] {
  const most = (kind: StateKind): number => Math.max(...wants.map((wanted) => SHOWN[wanted][kind]));
  const count = (tokens: readonly string[], { text, node }: StateItem): number => {
    const words = new Set(tokenize(`${text} ${node.title ?? ''} ${node.topic_tags.join(' ')}`));
    return tokens.filter((token) => words.has(token)).length;
  };
  const find = (kind: StateKind): StateItem[] => {
    const fitting = state[kind].filter((item) => count(about, item) >= ABOUT_SHARE * about.length);
    const named = fitting.filter((item) => count([...about, ...beside], item) > 0);
    // A question for decisions is told those outcomes that it names.
    return named.length > 0 || (kind === 'outcome' && wants.join() === 'decided') ? named : fitting;
  };
  const kinds: readonly StateKind[] =
    wants[0] === 'outcome' ? ['outcome', 'open', 'decided'] : ['open', 'decided', 'outcome'];
  return kinds.flatMap((kind) => find(kind).slice(0, most(kind)));
}
