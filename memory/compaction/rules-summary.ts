import { clip } from '../../common/text.ts';
import { isCleanOrigin, lowestOrigin } from '../../common/turn.ts';
import type { Decision, Fact, StatedItem } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type { DetailInput, ProposedNode, SummaryInput, SummaryResult, TopicShiftInput } from '../models/model.ts';
import { type Action, getActions, getCapsule } from '../text/actions.ts';
import { findImages, findShown, getModality } from '../text/content-type.ts';
import { contentTokens, getTags } from '../text/keywords.ts';
import { sharedWords } from '../text/paraphrase.ts';
import { findPerson, getConcept, getValues, NEGATION } from '../text/sentences.ts';
import { SUMMARY_MARKS, withoutUserMark } from '../text/validity.ts';
import { FOLLOWS, findOpen, getBrief, type ReadTurn } from './rules-brief.ts';
import { getChanged } from './supersede-rules.ts';
import { isShift, type TurnEmbeddings, topicRuns } from './topic-shift.ts';
import { ADVISES } from './turn/answer.ts';
import { OF_OPTION } from './turn/options.ts';
import { asQuestion, bare, clipOutcome, clipWhole, joinWithin } from './turn/outcome.ts';
import { readTurnState, type TurnState } from './turn-state.ts';

const FACTS = 6;
const FACT_CHARS = 240;
const ITEMS = 12;
const VALUES = 20;
/** Prompts equal up to this length count as equal. */
const COMPARED = 4_000;
/** Weighted size of buffer and turn at which each load level starts. */
const LOAD_CHARS = [300, 4_000, 16_000, 48_000];

const UNKNOWN: TurnEmbeddings = new Map();

export function detectTopicShiftByRules({ buffer, turn }: TopicShiftInput, embeddings = UNKNOWN) {
  const size = [...buffer, turn].reduce((sum, each) => sum + getWeight(each), 0);
  const said = turn.user.slice(0, COMPARED);
  return {
    logic_flow:
      readTurnState(turn).skip === null && isShift(turn, buffer, embeddings)
        ? ('BROKEN' as const)
        : ('MAINTAIN' as const),
    load_level: 1 + LOAD_CHARS.filter((chars) => size >= chars).length,
    redundancy_detected: buffer.some(({ user }) => / /.test(user) && sharedWords(user.slice(0, COMPARED), said) >= 0.8),
  };
}

/** Quotes what turns leave behind: one node per topic run, none for turns that leave nothing. */
export function summarizeByRules(input: SummaryInput, embeddings = UNKNOWN): SummaryResult {
  const all = input.turns.map((turn, at): ReadTurn => {
    return { turn, state: readTurnState(turn, input.turns[at - 1] ?? input.before) };
  });
  const states = new Map(all.map(({ turn, state }) => [turn, state]));
  const useful = all.filter(({ state }) => state.skip === null);
  const turns = useful.map(({ turn }) => turn);
  const nodes = topicRuns(turns, embeddings, (turn) => states.get(turn)?.isReply === true).map((run) => {
    const read = run.map((turn) => ({ turn, state: states.get(turn) as TurnState }));
    return draft(read, all, input.knownTags);
  });
  const skipped = all.flatMap(({ turn, state }) => (state.skip === null ? [] : [turn.turnId]));
  return { nodes, skipped, brief: getBrief(useful, input.briefClaims ?? []) };
}

function draft(run: readonly ReadTurn[], all: readonly ReadTurn[], knownTags: readonly string[]): ProposedNode {
  const states = run.map(({ state }) => state);
  const decisions = states.flatMap((state) => state.decisions).slice(-ITEMS);
  const open = findOpen(all)
    .filter(({ turn }) => run.some((each) => each.turn.turnId === turn))
    .slice(-ITEMS);
  const titled = states.find(({ isReply }) => !isReply) ?? states[0];
  const next = all[all.findIndex(({ state }) => state === states.at(-1)) + 1];
  const told = getOutcome(states, titled);
  const isRefuted = told !== '' && next?.state.refutes === true && run.at(-1)?.turn.edited !== true;
  const outcome = isRefuted ? `${CORRECTED}${told}` : told;
  const composed = composeSummary(run, decisions, open);
  const turns = run.map(({ turn }) => turn);
  const origin = getOrigin(run);
  const actions = getActions(turns).filter((action) => isCleanOrigin(action.origin) || !isCleanOrigin(origin));
  const summary =
    composed === ''
      ? withoutUserMark(standIn(turns, actions))
      : withArtifacts(composed, turns, outcome === '' ? actions : actions.filter(({ images }) => images !== ''));
  const prompts = states.map((state) => state.asked).join('\n');
  const values = [...new Set(states.flatMap((state) => state.values))].slice(0, VALUES);
  const importance = ['HIGH', 'MED', 'LOW'] as const;
  const title = withName(titled?.title ?? '', values, states);
  return {
    title,
    summary,
    outcome,
    decisions,
    open,
    values,
    trigger: getTrigger(title, values),
    topic_tags: getTags(prompts, summary, knownTags),
    importance: importance.find((level) => states.some((state) => state.importance === level)) ?? 'LOW',
    recall_mode: states.some(({ rules }) => rules.length > 0) ? 'both' : 'active',
    turns: run.map(({ turn }) => turn.turnId),
    origin,
    facts: run.flatMap(getFacts).slice(0, FACTS),
  };
}

/** Before what the user did not accept. */
const CORRECTED = 'Corrected since: ';
const EARLIER_CHARS = 300;

/** How the last turn ended, then what earlier ones came to, in statements that are whole; the newest have room first. */
function getOutcome(states: readonly TurnState[], titled: TurnState | undefined): string {
  const told = states.filter(({ outcome }, at) => outcome !== '' && states[at + 1]?.amends !== true);
  const [end, newestFirst] = [told.pop(), told.toReversed()];
  const last = end === undefined ? '' : `${end === titled || end.isReply ? '' : asQuestion(end.asked)}${end.outcome}`;
  let room = EARLIER_CHARS;
  const texts = newestFirst.flatMap((state, at) => {
    const lead = state === titled || state.isReply ? '' : asQuestion(state.asked, EARLIER_QUESTION_CHARS);
    const text = clipWhole(withoutAdvice(state.said), Math.floor(room / (newestFirst.length - at)), room);
    room -= text.length + 1;
    return text === '' ? [] : [`${lead}${ended(text)}`];
  });
  return texts.length === 0 ? last : `${ended(last)} Earlier: ${texts.toReversed().join(' ')}`;
}
const EARLIER_QUESTION_CHARS = 50;

/** Of a turn that others follow: what was only proposed was done or left since. */
function withoutAdvice(said: readonly string[]): readonly string[] {
  const told = said.filter((text) => !ADVISES.test(text) && !OF_OPTION.test(text));
  return told.length === 0 ? said : told;
}

/** Of everything that the summary may quote. */
function getOrigin(run: readonly ReadTurn[]): NonNullable<ProposedNode['origin']> {
  return lowestOrigin(
    run.flatMap(({ turn, state }) => [
      turn.userOrigin ?? 'user',
      state.answersOrigin,
      ...(state.outcome === '' && state.decisions.every(({ by }) => by === 'user') ? [] : [state.outcomeOrigin]),
      ...state.decisions.map(({ origin }) => origin),
      ...state.open.map(({ origin }) => origin),
    ]),
  );
}

/** A path, a dotted or an underscored name, or an identifier in camel case. */
const IDENTIFIER = /\p{L}[./_]\p{L}|\p{Ll}\p{Lu}/u;
const ANCHORS = 3;

function getTrigger(title: string, values: readonly string[]): string {
  const anchors = values.filter((value) => IDENTIFIER.test(value) && !title.includes(value)).slice(0, ANCHORS);
  const about = anchors.length === 0 ? '' : ` (${anchors.join(', ')})`;
  return title === '' ? `When I come back to this conversation${about}` : `When I come back to “${title}”${about}`;
}

const TITLE_CHARS = 70;
const TITLE_WORDS = 3;

/** With the identifier that is named most, where the title only points to it. */
function withName(title: string, values: readonly string[], states: readonly TurnState[]): string {
  if (title === '' || (!FOLLOWS.test(title) && contentTokens(title).length > TITLE_WORDS)) return title;
  const texts = states.flatMap(({ asked, said }) => [asked, ...said]);
  const count = (name: string): number => texts.filter((text) => text.includes(name)).length;
  const names = values.filter((value) => IDENTIFIER.test(value) && value.length < TITLE_CHARS / 2);
  const [name = ''] = names.toSorted((one, other) => count(other) - count(one));
  return name === '' || title.includes(name) ? title : `${clip(title, TITLE_CHARS - name.length - 3)} (${name})`;
}

function withArtifacts(summary: string, turns: readonly TurnText[], actions: readonly Action[]): string {
  const images = findImages(turns.map(({ user }) => user).join('\n'));
  const done = getCapsule(actions);
  const all = [...(images === '' ? [] : [`the user shows ${images}`]), ...(done === null ? [] : [done])];
  const segments = withoutUserMark(all.join('; '));
  return segments === '' ? summary : `${clip(bare(summary), SUMMARY_CHARS - segments.length - 2)}; ${segments}`;
}

/** Where nothing was said: what was shown, or which tools ran. */
function standIn(run: readonly TurnText[], actions: readonly Action[]): string {
  const prompts = run.map(({ user }) => user).join('\n');
  const shown = findShown(prompts);
  if (shown !== '' && getModality(run) !== 'dialog') return `user ${shown}`;
  const done = getCapsule(actions);
  if (done !== null) return `tool calls: ${done}`;
  const pasted = prompts.replace(/\s+/g, ' ').trim();
  return pasted === '' ? 'a turn without text' : `pasted text: ${clip(pasted, 160)}`;
}

/** Sentences with a subject and a value, and what was decided. */
function getFacts({ turn, state }: ReadTurn): Fact[] {
  const own = state.decisions.filter(({ text }) => state.told.includes(text) || state.said.includes(text));
  const decided = own.map(({ text, origin }) => ({ text, origin, concept: getConcept(text) ?? '' }));
  const stated = [
    ...state.told.map((text) => ({ text, origin: turn.userOrigin ?? ('user' as const) })),
    ...state.said.map((text) => ({ text, origin: state.outcomeOrigin })),
  ].map((each) => {
    const isShort = each.text.length <= FACT_CHARS && !/^…|; /.test(each.text) && getValues(each.text).length > 0;
    const isUsers = each.origin === 'user';
    const subject = (isUsers ? findPerson(each.text)?.subject : null) ?? (isShort ? getConcept(each.text) : null);
    // What ends other statements has to be a statement itself.
    return { ...each, concept: subject ?? (isUsers && isShort ? getChanged(each.text) : '') };
  });
  const all = [...decided, ...stated].filter(({ concept }) => concept !== '');
  return [...new Map(all.map((each) => [each.text, each])).values()].map(({ text, origin, concept }) => ({
    concept,
    value: text,
    polarity: NEGATION.test(text.replace(QUALIFIES, '')) ? ('negative' as const) : ('positive' as const),
    evidence: [turn.turnId],
    origin,
  }));
}

/** What follows the main clause, which alone says whether something is denied. */
const QUALIFIES = /(?:[,;:(–—]| (?:but|so|because|since|which|that|without|instead of|rather than)(?!\p{L})).*/u;
const SUMMARY_CHARS = 600;
/** Of it, for what was decided and what is open. */
const ITEMS_CHARS = 240;
const ASKED_SHARE = 0.45;
const LEAST_ASKED = 60;
const LEAST_STEP = 70;
const ANSWERED_CHARS = 160;

/** One text of a node: what was asked and how it ended, turn by turn, then what was decided and what is open. */
function composeSummary(run: readonly ReadTurn[], decisions: readonly Decision[], open: readonly StatedItem[]): string {
  const { user, quoted, prompt, ended, further, decided, left } = SUMMARY_MARKS;
  const isQuoted = run.some(({ turn }) => turn.userOrigin !== undefined);
  const own = run.map(({ state }) => state).filter(({ asked, outcome }) => asked !== '' || outcome !== '');
  const isTold = (text: string): boolean =>
    own.some(({ asked, said }) => asked.includes(text) || said.includes(text) || text.startsWith(`“${asked}” `));
  const items = (mark: string, stated: readonly StatedItem[]): string => {
    const fresh = stated.flatMap(({ text }) => (isTold(text) ? [] : [text]));
    return fresh.length === 0
      ? ''
      : `${mark}${bare(joinWithin(fresh.map((text) => `${bare(text)};`).toReversed(), ITEMS_CHARS / 2))}`;
  };
  const tail = withoutUserMark(items(decided, decisions) + items(left, open));
  let room = SUMMARY_CHARS - tail.length;
  let text = '';
  for (const [at, { asked, said, answers, isTyped }] of own.entries()) {
    const speaker = asked === '' ? '' : isQuoted ? quoted : isTyped ? user : prompt;
    const lead = answers === '' ? '' : `asked “${withoutUserMark(clip(answers, ANSWERED_CHARS))}”, `;
    const mark = at === 0 ? `${lead}${speaker}` : `${further}${lead}${lead === '' ? '' : speaker}`;
    const share = Math.floor(room / (own.length - at)) - mark.length;
    if (share < LEAST_STEP && at > 0 && at < own.length - 1) continue;
    const askedShare = said.length === 0 ? share : Math.floor(share * ASKED_SHARE);
    const question = clip(asked, Math.max(LEAST_ASKED, askedShare));
    const answer = said.length === 0 ? '' : clipOutcome(said, share - question.length - ended.length);
    const texts = [question, answer].filter((each) => each !== '').map(bare);
    const step = `${mark}${withoutUserMark(texts.join(ended))}`;
    text += step;
    room -= step.length;
  }
  const whole = `${text}${tail}`.replace(/^; (?:decided|open): /, (start) => start.slice(2));
  return clip(whole, SUMMARY_CHARS);
}

function getWeight(turn: TurnText): number {
  return turn.parts.reduce((sum, part) => {
    return sum + (part.kind === 'assistant' ? part.text.length : Math.min(part.text.length, 2_000));
  }, turn.user.length);
}

const DETAIL_SENTENCES = 8;

/** What was asked, how it ended, what was decided and what is open, in whole statements. */
export function detailByRules({ turns, summary }: DetailInput) {
  const states = turns.map((turn, at) => readTurnState(turn, turns[at - 1])).filter(({ skip }) => skip === null);
  const each = Math.max(2, Math.floor(DETAIL_SENTENCES / Math.max(1, states.length)));
  const sentences = states.flatMap(({ asked, said, decisions, open }) => [
    ...(asked === '' ? [] : [`The user: ${ended(asked)}`]),
    ...[...said.slice(0, each - 1), ...[...decisions, ...open].map(({ text }) => text)].map(ended),
  ]);
  return { sentences: sentences.length === 0 ? [summary] : [...new Set(sentences)].slice(0, DETAIL_SENTENCES) };
}

const ended = (text: string): string => (/[.!?…。！？”]$/u.test(text) ? text : `${text}.`);
