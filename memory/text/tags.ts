import type { Origin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { ACTS, type Action, REJECTED } from './actions.ts';
import { isNoise, STANDING, split } from './sentences.ts';
import { typedText } from './typed-text.ts';

const ACT = 'FLAG:ACT_';
const FLAG = 'FLAG:';
const ORIGIN = 'ORIGIN:';
/** The weightiest first; any other flag comes after them. */
const FLAGS = ['FEEDBACK', 'USER_REJECT', 'DECISION', 'FAILURE', 'SKILL'];
/** Beside what was done: what was said. */
const ACTS_SAID = ['DECIDE', 'DIAGNOSE', 'FAIL', 'PLAN'] as const;
const ACT_ORDER: readonly string[] = [ACTS[0], ...ACTS_SAID, ...ACTS.slice(1)];
/** What a model may say of turns; what the user decided or ruled is read from the user's words. */
const PROPOSED = new Set([
  ...ACT_ORDER.map((act) => `${ACT}${act}`),
  ...['SKILL', 'USER_REJECT', 'FAILURE'].map((flag) => `${FLAG}${flag}`),
  ...['WEB_SEARCH', 'FILE_EDIT', 'SUBAGENT_RESULT', 'PROJECT_GOAL'].map((origin) => `${ORIGIN}${origin}`),
]);
const META = /^(?:ORIGIN|FLAG|IMPORTANCE):/i;
const NAME = /^[A-Z][A-Z_]{0,19}$/;
const DECIDED =
  /\b(?:decid\w+|agreed|chose|going with|let's use|we (?:will |'ll )?use|switch\w* to|from now on)\b|(?:결정|决定|決定)/i;
const CORRECTS =
  /^(?:no[,. ]|not (?:like|what)|wrong\b|stop\b)|\b(?:that'?s (?:wrong|not)|i (?:said|asked for|meant)|don'?t do that|instead of)\b/i;

const GOAL =
  /\b(?:(?:the|our|my|project'?s?) goal (?:is|of this project)|(?:we|i) (?:want|are going|am going|'re going) to build|this (?:project|app|service|tool) (?:aims|is (?:about|for|meant)))\b|(?<!\p{L})(?:das Ziel ist|unser Ziel|el objetivo es|le but est)(?!\p{L})|(?:目标是|目標は|목표는)/iu;
const DIAGNOSED =
  /\b(?:root cause|(?:cause|culprit|reason|bug|problem|issue) (?:is|was)|(?:is|was) caused by|turned out (?:to be|that))\b|(?<!\p{L})(?:Ursache|la causa)(?!\p{L})|(?:原因是|原因は|원인은)/iu;
const REJECTS = /^(?:no|nope|nein|non)[,.!]? /i;
const PLANNERS = /^(?:Enter|Exit)PlanMode$|^TodoWrite$|^TaskCreate$/;
const SKILLS = /^(?:Skill|SlashCommand)$/;
/** So much of an answer is searched for what it found out. */
const ANSWER_CHARS = 20_000;

/** Meta tags that a model gives, in their one spelling. */
export function proposedTags(tags: readonly string[]): string[] {
  return [...new Set(tags.map((tag) => tag.trim().toUpperCase()))].filter((tag) => PROPOSED.has(tag));
}

/** Tags that say what a memory is about; those of an axis say what kind of memory it is. */
export const contentTags = (tags: readonly string[]): string[] => tags.filter((tag) => !META.test(tag));

/** Meta tags that turns earn by what was said and done. */
export function getFlags(turns: readonly TurnText[], actions: readonly Action[]): string[] {
  const sentences = turns
    .flatMap((turn) => (turn.userOrigin === undefined ? split(typedText(turn.user)) : []))
    .filter((text) => !isNoise(text, 'user'));
  const parts = turns.flatMap((turn) => turn.parts);
  const answer = parts.flatMap(({ kind, text }) => (kind === 'assistant' ? [text] : [])).join('\n');
  const uses = (name: RegExp): boolean => actions.some(({ tool }) => name.test(tool));
  const acts = ACTS.filter((act) => actions.some((action) => action.act === act));
  const said = (sign: RegExp): boolean => sentences.some((text) => sign.test(text));
  const decided = said(DECIDED);
  const failed = actions.at(-1)?.failed === true;
  const rejected = parts.some(({ kind, text }) => kind === 'tool_result' && REJECTED.test(text));
  const when = (isSo: boolean, tag: string): string[] => (isSo ? [tag] : []);
  return [
    ...acts.slice(0, 1).map((act) => `${ACT}${act}`),
    ...when(decided, `${ACT}DECIDE`),
    ...when(DIAGNOSED.test(answer.slice(-ANSWER_CHARS)), `${ACT}DIAGNOSE`),
    ...when(failed, `${ACT}FAIL`),
    ...when(uses(PLANNERS), `${ACT}PLAN`),
    ...when(said(STANDING) || said(CORRECTS), `${FLAG}FEEDBACK`),
    ...when(rejected || said(REJECTS), `${FLAG}USER_REJECT`),
    ...when(decided, `${FLAG}DECISION`),
    ...when(failed, `${FLAG}FAILURE`),
    ...when(uses(SKILLS), `${FLAG}SKILL`),
    ...when(acts.includes('FETCH'), `${ORIGIN}WEB_SEARCH`),
    ...when(acts.includes('EDIT'), `${ORIGIN}FILE_EDIT`),
    ...when(acts.includes('DELEGATE'), `${ORIGIN}SUBAGENT_RESULT`),
    ...when(said(GOAL), `${ORIGIN}PROJECT_GOAL`),
  ];
}

/**
 * `(O:USER A:EDIT F:FEEDBACK I:H)`: the weightiest of each axis. Origin and importance are the node's own fields, so that
 * an edit by hand is seen at once. A line that is shown says its source too, `S:db.ts`.
 */
export function terseMeta(
  node: Pick<MemoryNode, 'topic_tags' | 'importance' | 'origin'>,
  { origin = node.origin, source }: { readonly origin?: Origin; readonly source?: string } = {},
): string {
  const flags = node.topic_tags.filter((tag) => !tag.startsWith(ACT));
  const act = first(startingWith(ACT, node.topic_tags), ACT_ORDER);
  const axes = [
    ['O', origin.toUpperCase()],
    ['A', act],
    ['F', first(startingWith(FLAG, flags), FLAGS)],
    ['I', node.importance[0]],
    ['S', source],
  ] as const;
  return `(${axes.flatMap(([axis, value]) => (value === undefined ? [] : [`${axis}:${value}`])).join(' ')})`;
}

function startingWith(mark: string, tags: readonly string[]): string[] {
  return tags.flatMap((tag) => (tag.startsWith(mark) ? [tag.slice(mark.length)] : []));
}

function first(names: readonly string[], order: readonly string[]): string | undefined {
  const tags = names.map((name) => name.toUpperCase()).filter((name) => NAME.test(name));
  return order.find((name) => tags.includes(name)) ?? tags.toSorted()[0];
}
