import { clip } from '../../common/text.ts';
import { lowestOrigin } from '../../common/turn.ts';
import type { Claim } from '../model/node.ts';
import type { TurnText } from '../model/turn.ts';
import type {
  DetailInput,
  DetailResult,
  ProposedNode,
  SummaryInput,
  SummaryResult,
  TopicShiftInput,
  TopicShiftReading,
} from '../models/model.ts';
import { modalityOf, shownIn } from '../text/content-type.ts';
import { anchorsOf, contentTokens, tagsOf, topicTokens } from '../text/keywords.ts';
import { DECISION, isEmpty, isIdle, type Sentence, STANDING, sentencesOf, userSentences } from '../text/sentences.ts';
import { uniqueTokens } from '../text/tokenizer.ts';
import { isShift, type TurnEmbeddings, topicRuns } from './topic-shift.ts';

const SUMMARY_CHARS = 600;
const CLAIM_CHARS = 200;
const SAME = 0.7;
/** Factor on a sentence's worth when the summary has all of its values already. */
const REPEATED = 0.3;
/** Candidate sentences; a summary holds a dozen. */
const WEIGHED = 150;
/** Added to the length before dividing, so that the shortest sentence does not always win. */
const PLAIN_CHARS = 40;
const FACTS = 6;
const OLD_CLAIMS = 6;
const NAMED_WORDS = 3;
/** Prompts equal up to this length count as equal. */
const COMPARED_CHARS = 4_000;
/** Weighted size of buffer and turn at which each load level starts. */
const LOAD_CHARS = [300, 4_000, 16_000, 48_000];

const UNKNOWN: TurnEmbeddings = new Map();

export function detectTopicShiftByRules({ buffer, turn }: TopicShiftInput, embeddings = UNKNOWN): TopicShiftReading {
  const size = [...buffer, turn].reduce((sum, each) => sum + weightOf(each), 0);
  return {
    logic_flow: isShift(turn, buffer, embeddings) ? 'BROKEN' : 'MAINTAIN',
    load_level: 1 + LOAD_CHARS.filter((chars) => size >= chars).length,
    redundancy_detected: buffer.some((each) => overlap(opening(each), opening(turn)) >= 0.8),
  };
}

export interface Compacting {
  readonly summaryChars?: number;
  readonly embeddings?: TurnEmbeddings;
}

/** Extracts sentences, one node per topic run. */
export function summarizeByRules(
  input: SummaryInput,
  { summaryChars = SUMMARY_CHARS, embeddings = UNKNOWN }: Compacting = {},
): SummaryResult {
  const nodes = topicRuns(input.turns, embeddings).map((run) => draft(run, input.knownTags, summaryChars));
  return { nodes, brief: briefOf(input) };
}

function draft(run: readonly TurnText[], knownTags: readonly string[], summaryChars: number): ProposedNode {
  const sentences = run.flatMap(sentencesOf);
  const kept = choose(sentences, summaryChars);
  const text = kept.map((sentence) => sentence.text).join('\n');
  const asked = run.flatMap((turn) => (isIdle(turn) ? [] : [turn.user])).join('\n');
  const anchors = anchorsOf(text === '' ? asked : text);
  const decided = kept.filter((sentence) => DECISION.test(sentence.text));
  return {
    summary: summaryOf(kept, run),
    trigger: `When I ${anchors.length === 0 ? 'come back to this conversation' : `get to ${listed(anchors)}`}`,
    topic_tags: tagsOf(asked, text, knownTags),
    importance: decided.some((sentence) => sentence.by === 'user') ? 'HIGH' : kept.length === 0 ? 'LOW' : 'MED',
    recall_mode: kept.some((sentence) => sentence.by === 'user' && STANDING.test(sentence.text)) ? 'both' : 'active',
    turns: run.map((turn) => turn.turnId),
    ...(kept.length === 0 ? {} : { origin: lowestOrigin(kept.map((sentence) => sentence.origin)) }),
    facts: decided.slice(0, FACTS).map((sentence) => ({
      concept: listed(anchorsOf(sentence.text).slice(0, 2)) || sentence.by,
      value: sentence.text,
      polarity: /\b(?:never|not|don't|no longer|instead of|rather than|nie|niemals|nicht|jamais|nunca)\b/i.test(
        sentence.text,
      )
        ? 'negative'
        : 'positive',
      evidence: [sentence.turn],
    })),
  };
}

/** Greedy by worth per length, without near duplicates, in original order. */
function choose(sentences: readonly Sentence[], maxChars: number): Sentence[] {
  const told = sentences.filter(({ by, worth }) => worth > (by === 'user' ? PLAIN_ORDER : 0));
  const left = new Set(told.toSorted((a, b) => b.worth - a.worth).slice(0, WEIGHED));
  const chosen = new Set<Sentence>();
  const known = new Set<string>();
  let room = maxChars - USER.length - ANSWERED.length;
  for (;;) {
    const fitting = [...left].filter(({ text }) => text.length + 2 <= room);
    const [next] = fitting.toSorted((a, b) => density(b, known) - density(a, known));
    if (next === undefined) break;
    left.delete(next);
    const isNew = next.values.some((value) => !known.has(value));
    if (!isNew && [...chosen].some((other) => overlap(other.text, next.text) >= SAME)) continue;
    chosen.add(next);
    for (const value of next.values) known.add(value);
    room -= next.text.length + 2;
  }
  return sentences.filter((sentence) => chosen.has(sentence));
}

/** Worth per length; an answer that repeats the figures of the request adds little. */
function density({ text, values, worth }: Sentence, known: ReadonlySet<string>): number {
  const isNew = values.length === 0 || values.some((value) => !known.has(value));
  return (isNew ? worth : worth * REPEATED) / (PLAIN_CHARS + text.length);
}

const USER = 'user says: ';
/** Prefix for the prompt of an imported file. */
const QUOTED = 'quoted: ';
const ANSWERED = ' — answered: ';
/** Worth of a user request without figure, name, path or rule; the answer covers it. */
const PLAIN_ORDER = 1.5;

/** Never empty: falls back to the first prompt, then to the tool names. */
function summaryOf(kept: readonly Sentence[], run: readonly TurnText[]): string {
  const said = (by: Sentence['by']): string =>
    kept.flatMap((sentence) => (sentence.by === by ? sentence.text.replace(/[.;]+$/, '') : [])).join('; ');
  const [asked, answered] = [said('user'), said('assistant')];
  const asks = run.some((turn) => turn.userOrigin !== undefined) ? QUOTED : USER;
  if (asked !== '') return `${asks}${asked}${answered === '' ? '' : `${ANSWERED}${answered}`}`;
  if (answered !== '') return answered;
  if (run.every(isIdle)) return 'nothing that was worth keeping';
  const prompt = run
    .filter((turn) => !isIdle(turn))
    .map((turn) => turn.user.replace(/\s+/g, ' ').trim())
    .find((text) => text !== '');
  const shown = shownIn(run.map((turn) => turn.user).join('\n'));
  if (shown !== '' && modalityOf(run) !== 'dialog') return `user ${shown}`;
  if (prompt !== undefined) return `${asks}${clip(prompt, CLAIM_CHARS)}`;
  const tools = [...new Set(run.flatMap((turn) => turn.parts.map((part) => part.tool)))].filter((tool) => tool !== '');
  return tools.length === 0 ? 'a turn without text' : `a turn of tool calls: ${tools.join(', ')}`;
}

/** The latest user requests verbatim, then the old brief; standing preferences become hints, newest kept. */
function briefOf({ turns, briefClaims = [] }: SummaryInput): SummaryResult['brief'] {
  const active = turns.flatMap((turn): Claim[] => {
    const told = userSentences(turn).find(
      ({ text }) => text.length <= CLAIM_CHARS && saysWhat(text) && !isEmpty(text, 'user'),
    );
    return told === undefined ? [] : [{ text: told.text, sources: [turn.turnId] }];
  });
  const wishes = turns.flatMap((turn) =>
    userSentences(turn)
      .filter(({ text }) => STANDING.test(text) && text.length <= CLAIM_CHARS && !isEmpty(text, 'user'))
      .map(({ text }): Claim => ({ text, sources: [turn.turnId] })),
  );
  const standing = [...briefClaims.filter(({ text }) => STANDING.test(text)), ...wishes];
  const hints = [...new Map(standing.map((claim) => [claim.text, claim])).values()].slice(-8);
  const open = briefClaims.filter(({ text }) => !STANDING.test(text) && !active.some((claim) => claim.text === text));
  return { active: [...active.slice(-4).toReversed(), ...open.slice(0, OLD_CLAIMS)], hints };
}

/** False for sentences such as "Good, keep that." that do not name the work. */
function saysWhat(text: string): boolean {
  const named = topicTokens(text).filter((token) => contentTokens(token).length > 0);
  return named.length >= NAMED_WORDS || (named.length > 0 && /[\d`/_]|[a-z][A-Z.]\w/.test(text));
}

function opening(turn: TurnText): string {
  return turn.user.slice(0, COMPARED_CHARS);
}

function weightOf(turn: TurnText): number {
  return turn.parts.reduce((sum, part) => {
    return sum + (part.kind === 'assistant' ? part.text.length : Math.min(part.text.length, 2_000));
  }, turn.user.length);
}

/** Share of the shorter text's distinct words that the other contains. */
function overlap(one: string, other: string): number {
  const [small, large] = [uniqueTokens(one), uniqueTokens(other)].sort((a, b) => a.length - b.length) as [
    string[],
    string[],
  ];
  if (small.length < 2) return one === other ? 1 : 0;
  const words = new Set(large);
  return small.filter((word) => words.has(word)).length / small.length;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

const MAX_DETAIL_SENTENCES = 8;
const MIN_DETAIL_SENTENCES = 3;

export function detailByRules({ turns, summary }: DetailInput): DetailResult {
  const told = turns.filter((turn) => !isIdle(turn)).flatMap(sentencesOf);
  const said = [...new Map(told.map((sentence) => [sentence.text, sentence])).values()];
  const telling = said.filter(({ text, by, worth }) => worth > 0 && !isEmpty(text, by));
  const others = said.filter((sentence) => !telling.includes(sentence) && !isEmpty(sentence.text, sentence.by));
  const chosen = new Set([
    ...telling.toSorted((one, other) => other.worth - one.worth).slice(0, MAX_DETAIL_SENTENCES),
    ...others.slice(0, Math.max(0, MIN_DETAIL_SENTENCES - telling.length)),
  ]);
  const sentences = said.filter((sentence) => chosen.has(sentence)).map(spoken);
  return { sentences: sentences.length === 0 ? [summary] : sentences };
}

function spoken({ text, by }: Sentence): string {
  const whole = /[.!?。！？]$/u.test(text) ? text : `${text}.`;
  return by === 'user' ? `The user: ${whole}` : whole;
}
