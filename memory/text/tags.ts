import type { Origin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import { ACTS, type Action } from './actions.ts';
import { isNoise, STANDING, split } from './sentences.ts';
import { typedText } from './typed-text.ts';

const ACT = 'FLAG:ACT_';
const FLAG = 'FLAG:';
/** The weightiest first; any other flag comes after them. */
const FLAGS = ['FEEDBACK', 'DECISION', 'FAILURE'];
const META = /^(?:ORIGIN|FLAG|IMPORTANCE):/i;
const NAME = /^[A-Z][A-Z_]{0,19}$/;
const DECIDED =
  /\b(?:decid\w+|agreed|chose|going with|let's use|we (?:will |'ll )?use|switch\w* to|from now on)\b|(?:결정|决定|決定)/i;
const CORRECTS =
  /^(?:no[,. ]|not (?:like|what)|wrong\b|stop\b)|\b(?:that'?s (?:wrong|not)|i (?:said|asked for|meant)|don'?t do that|instead of)\b/i;

/** Tags that say what a memory is about; those of an axis say what kind of memory it is. */
export function contentTags(tags: readonly string[]): string[] {
  return tags.filter((tag) => !META.test(tag));
}

/** Flags that turns earn, by what the user said and what was done; never by what a model says of them. */
export function flagsOf(turns: readonly TurnText[], actions: readonly Action[]): string[] {
  const said = turns
    .flatMap((turn) => (turn.userOrigin === undefined ? split(typedText(turn.user)) : []))
    .filter((text) => !isNoise(text, 'user'));
  const flags = [
    ...(said.some((text) => STANDING.test(text) || CORRECTS.test(text)) ? ['FEEDBACK'] : []),
    ...(said.some((text) => DECIDED.test(text)) ? ['DECISION'] : []),
    ...(actions.at(-1)?.failed === true ? ['FAILURE'] : []),
  ];
  const acts = ACTS.filter((act) => actions.some((action) => action.act === act));
  return [...acts.slice(0, 1).map((act) => `${ACT}${act}`), ...flags.map((flag) => `${FLAG}${flag}`)];
}

/**
 * `(O:USER A:EDIT F:FEEDBACK I:H)`: the weightiest of each axis. Origin and importance are the node's own fields, so that
 * an edit by hand is seen at once. A line that is shown says its source too, `S:db.ts`.
 */
export function terseMeta(
  node: Pick<MemoryNode, 'topic_tags' | 'importance' | 'origin'>,
  { origin = node.origin, source }: { readonly origin?: Origin; readonly source?: string } = {},
): string {
  const flags = node.topic_tags.filter((tag) => tag.startsWith(FLAG));
  const act = first(
    flags.filter((tag) => tag.startsWith(ACT)).map((tag) => tag.slice(ACT.length)),
    ACTS,
  );
  const flag = first(
    flags.filter((tag) => !tag.startsWith(ACT)).map((tag) => tag.slice(FLAG.length)),
    FLAGS,
  );
  const axes = [
    ['O', origin.toUpperCase()],
    ['A', act],
    ['F', flag],
    ['I', node.importance[0]],
    ['S', source],
  ] as const;
  return `(${axes.flatMap(([axis, value]) => (value === undefined ? [] : [`${axis}:${value}`])).join(' ')})`;
}

function first(names: readonly string[], order: readonly string[]): string | undefined {
  const known = names.map((name) => name.toUpperCase()).filter((name) => NAME.test(name));
  return order.find((name) => known.includes(name)) ?? known.toSorted()[0];
}
