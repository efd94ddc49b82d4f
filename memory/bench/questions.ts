import { grouped } from '../../common/map.ts';
import { trimEnd } from '../../common/text.ts';
import type { LanguageModel } from '../models/model.ts';
import { questionsPrompt } from '../models/prompts/questions.ts';
import { contentTokens } from '../text/keywords.ts';
import { isAsking, isNoise, split, splitSentences } from '../text/sentences.ts';
import { tokenize } from '../text/tokenizer.ts';
import { getLetters, typedText } from '../text/typed-text.ts';
import type { PastTurn } from './turns.ts';

/** `reference`: a later prompt names something that few earlier turns name; `model`: made by a language model. */
export type QuestionKind = 'value' | 'decision' | 'reason' | 'reference' | 'model';

export interface Question {
  readonly kind: QuestionKind;
  readonly text: string;
  /** Stands in every right turn. */
  readonly answer: string;
  /** How many of the turns, oldest first, were said when it is asked. */
  readonly before: number;
  /** Places of the turns that answer it. */
  readonly right: readonly number[];
}

/** A question and its answer, as one sentence gives them. */
interface Draft {
  readonly text: string;
  readonly answer: string;
}

/** Content words of a question: fewer say too little to find anything by. */
const LEAST_WORDS: Readonly<Record<QuestionKind, number>> = {
  value: 6,
  decision: 3,
  reason: 5,
  reference: 5,
  model: 1,
};
/** A turn with the answer and this share of the question's words answers it too. */
const SAME_SHARE = 0.6;
/** A reference is in words of its own, but for the name. */
const NAMED_SHARE = 0.4;
/** More turns that answer it: nothing is special about any of them. */
const MOST_RIGHT = 3;
const SENTENCE_CHARS = [35, 220] as const;
/** A turn as near as this in the same session is still in the context. */
const NEAR_TURNS = 8;

const UNITS =
  'milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|hours?|days?|weeks?|months?|years?|bytes|[kmgt]i?b|percent|%|tokens|characters|chars|requests?|retries|attempts|connections?|users?|gpus?|cores|replicas?';
const THINGS =
  'port|version|commit|branch|tag|PR|issue|ticket|function|method|flag|option|field|command|subcommand|file|folder|directory|package|hook|test|struct|type|interface|variable|env var|environment variable|key|setting|constant|error|trailer|label|host|server|database|table|column|queue|topic|bucket|region|endpoint|url|account|model|library|module|class|parameter|argument|helper|script|job|workflow|service|skill|strategy|prefix|suffix|id|header|cookie|property|attribute|enum|value';
/** What may stand before a thing and goes with its name; adjectives stay. */
const ARTICLE = '(?:\\b(?:the|a|an|that|our|your|its)\\s+((?:[a-z-]{3,20}\\s+){0,2}))?';
const AMOUNT = new RegExp(`(?<![\\w.,:/=<>~-])(\\d+(?:[.,]\\d+)*)[ -]?(${UNITS})(?![\\w/=-])`, 'i');
const THING_AFTER = new RegExp(`${ARTICLE}\`([^\`\\s]{3,60})\`\\s+(${THINGS})(?![\\w-])`, 'i');
const THING_BEFORE = new RegExp(
  `(?:^(?!setting)|\\b(?:the|a|an|our|your|at|in|on|from|to|of|with|via|using|by|for|and)\\s+)()(${THINGS})\\s+\`([^\`\\s]{3,60})\``,
  'i',
);
const NUMBERED =
  /\b(port|version|PR|issue|ticket|exit code|status code)(?: (?:is|number|no\.))? (#?v?\d[\w.]*\w|#?\d+)(?![\w-])/i;

/** Begins by pointing at what stands elsewhere, or reports what is being done. */
const DANGLING =
  /^(?:(?:let me|let's|now|i|i'll|i've|i'm|we'll|you|your|you're|perfect|great|good|done|looking|first|next|then|also|and|but|so|or|it|its|it's|they|he|she|here|here's|there|there's|yes|no|ok|okay|both|all|each|same|which|what|because|since|if|when|while|after|before|to|for|with|in|at|on|as|lines?|adds?|added|remove[sd]?|updated?|changed?|fix(?:ed)?|created?|renamed?|moved?|replaced?|store|skip|implemented|refactored|reduced|increased|display|tests? (?:passes|shows)|the (?:tests? (?:pass|shows?|output)|issue|problem|reason|fix|bug|failing)|actually|wait|hmm|note|option|step|see|run|check|in short|however|instead|otherwise|example|previously|currently|always)\b|.{0,40}:|.{0,70} [-–—] |["'([{|>])/i;
const PASSING =
  /\b(?:this|these|those|worst case|e\.g\.|for example|for instance|such as|you (?:saw|wrote|said)|so far|lines? \d|line number|session [ab]|old way|new file)\b|[→|✅❌:]$|[→|✅❌]|https?:/i;
/** A share is worth asking for where it is a rule. */
const SHARE_RULE =
  /\b(?:at least|at most|above|below|threshold|limit|default|over|under|more than|less than|fewer than|up to|minimum|maximum)\b/i;

/** What the assistant or the user stated once, asked for by the sentence around it. */
export function valueQuestion(sentence: string): Draft | null {
  const amount = AMOUNT.exec(sentence);
  if (amount !== null) {
    const unit = (amount[2] as string).replace('%', 'percent');
    if (unit === 'percent' && !SHARE_RULE.test(sentence)) return null;
    return draftQuestion(sentence, amount, `how many ${unit}`, amount[0]);
  }
  const after = THING_AFTER.exec(sentence);
  if (after !== null) return draftQuestion(sentence, after, `which ${after[1] ?? ''}${after[3]}`, after[2] as string);
  const before = THING_BEFORE.exec(sentence);
  if (before !== null) {
    const lead = (before[0] as string)
      .slice(0, -`${before[2]} \`${before[3]}\``.length)
      .replace(/\b(?:the|a|an|our|your)\s+$/i, '');
    return draftQuestion(sentence, before, `${lead}which ${before[2]}`, before[3] as string);
  }
  const numbered = NUMBERED.exec(sentence);
  return numbered === null ? null : draftQuestion(sentence, numbered, `which ${numbered[1]}`, numbered[2] as string);
}

function draftQuestion(sentence: string, { index, 0: whole }: RegExpExecArray, words: string, answer: string) {
  const [head, tail] = [sentence.slice(0, index), sentence.slice(index + whole.length)];
  const isQuoted = (head.split('"').length - 1) % 2 === 1;
  // Without the value the rest must not give it away.
  if (isQuoted || /, and $/.test(head) || getLetters(head + tail).includes(getLetters(answer))) return null;
  return { text: getQuestion(`${head}${words}${tail}`), answer };
}

const BECAUSE = /^(.{20,150}?),? because (?!of\b)([^:]{20,180})$/i;

/** What is so, and why. */
export function reasonQuestion(sentence: string): Draft | null {
  const [, claim = '', reason = ''] = BECAUSE.exec(sentence) ?? [];
  if (claim === '' || /\b(?:not|only|just|simply|probably|maybe|is|was|are|were)$/i.test(claim)) return null;
  const first = /^(?:The|A|An|We|All|Our|Each|Every|No|Some|Both|Most|Any)\b/.test(claim);
  const lowered = first ? claim.charAt(0).toLowerCase() + claim.slice(1) : claim;
  return { text: getQuestion(`why is it that ${lowered}`), answer: trimEnd(reason, '.;!') };
}

const VERBS =
  'use|keep|drop|remove|delete|rename|set|add|move|change|replace|switch|call|put|store|skip|ignore|default|limit|disable|enable|merge|split|write|make|support|show|hide|print|return|log|document|update|apply|address|revert|include|exclude|cap|cache|pin|bump|deploy|release|test|require|allow|forbid|ask';
const CLAUSE_END =
  '(?=[.,;:!?](?:\\s|$)|\\s(?:and|but|since|because|so|then|now|too|instead|if|unless|when|until|as|for now)\\b|$)';
const DECIDES = new RegExp(
  `(?<!\\b(?:where|what|how|if|whether|when|which|why) )\\b(?:let'?s|we (?:should|must|will|won't|want to|shouldn't|can't|need to)|from now on,?|always|never|please)\\s+(?:(?:also|just|only|always|never|not|completely|explicitly|rather|still)\\s+)*(?<deed>(?:${VERBS})\\s+(?<what>.{8,90}?))${CLAUSE_END}`,
  'i',
);
const INSTEAD = new RegExp(
  `\\b(?:use|do|say|call it|have|write|with|to) (.{2,50}?) instead of (.{3,60}?)(?:${CLAUSE_END}|(?=\\s(?:in|for|at|on)\\b))`,
  'i',
);
const TURNED =
  /\b(rename|set|change|increase|reduce) (?:the )?(.{3,60}?) to ([`"'“][^`"'”]{1,40}[`"'”]|[\w./-]{1,40})/i;
const POINTING = /^(?:it|this|that|them|these|those|one|both|some|more|tests?|option \w+|\d+|to|also|sure|in mind)\b/i;
const ASKS_BACK = /^(?:why|what|how|when|where|who|which|is|are|does|do|did|would|hmm)\b/i;

/** What the user decided, asked again. */
export function decisionQuestion(sentence: string): Draft | null {
  if (ASKS_BACK.test(sentence)) return null;
  const [, verb = '', turned = '', value = ''] = TURNED.exec(sentence) ?? [];
  if (verb !== '' && !POINTING.test(turned))
    return { text: getQuestion(`what did we ${verb} ${turned} to`), answer: value };
  const [, chosen = '', dropped = ''] = INSTEAD.exec(sentence) ?? [];
  if (chosen !== '' && !POINTING.test(chosen))
    return { text: getQuestion(`what do we use instead of ${dropped}`), answer: chosen };
  const { deed = '', what = '' } = DECIDES.exec(sentence)?.groups ?? {};
  if (deed === '' || POINTING.test(what) || contentTokens(what).length < 2) return null;
  return { text: getQuestion(`did we decide to ${deed}`), answer: what };
}

function getQuestion(text: string): string {
  const flat = trimEnd(text.replace(/\s+/g, ' '), ' .,:;!?');
  return `${flat.charAt(0).toUpperCase()}${flat.slice(1)}?`;
}

/** Paths, identifiers of several parts, and what stands in backticks. */
const IDENTIFIER =
  /`([\w-]+(?:[ ./:][\w-]+)*(?:\(\))?)`|(?<![\w/.-])((?:[\w.-]+\/)+[\w-]+\.\w+|(?:[\w.-]+\/){2,}[\w.-]+|[\w-]+\.(?:go|ts|tsx|md|json|py|js|jsx|rs|rb|java|kt|c|cpp|h|cs|sql|ya?ml|toml|sh|css|html)|(?=\w{10})(?:[a-z]+[A-Z]|[A-Z][a-z]+[A-Z])\w+|[a-z]+(?:_[a-z]+)+|[A-Z]{2,}(?:_[A-Z]+)+)(?![\w/])/g;
const PROMPT_CHARS = 420;

/**
 * Questions that the turns themselves answer, made without a model, the newest first within each kind. A reference is
 * asked where its prompt was, everything else after the last turn.
 * @param turns  of one project, oldest first
 */
export function makeQuestions(turns: readonly PastTurn[]): Question[] {
  const letters = turns.map(({ text }) => getLetters(text));
  const tokens = turns.map(({ text }) => new Set(tokenize(text)));
  const questions = new Map<string, Question>();

  function findShare(words: readonly string[], place: number): number {
    return words.filter((word) => tokens[place]?.has(word)).length / words.length;
  }

  function rightFor({ text, answer }: Draft, at: number): number[] {
    const words = contentTokens(text);
    const wanted = getLetters(answer);
    const answers = (place: number): boolean =>
      (letters[place] as string).includes(wanted) && findShare(words, place) >= SAME_SHARE;
    return [...turns.keys()].filter((place) => place === at || answers(place));
  }

  function take(kind: QuestionKind, draft: Draft | null, at: number): void {
    if (draft === null || contentTokens(draft.text).length < LEAST_WORDS[kind] || getLetters(draft.answer).length < 2)
      return;
    const right = rightFor(draft, at);
    if (right.length > MOST_RIGHT) return;
    questions.set(draft.text, { kind, ...draft, before: turns.length, right });
  }

  for (const [at, { read }] of turns.entries()) {
    const typed = typedText(read.user);
    const answers = read.parts.filter(({ kind, origin }) => kind === 'assistant' && origin === 'assistant');
    for (const sentence of splitSentences(typed.replace(/\s+/g, ' '))) {
      const isLong = sentence.length > SENTENCE_CHARS[1] || typed.length > 3 * PROMPT_CHARS;
      if (!isLong) take('decision', decisionQuestion(sentence), at);
    }
    for (const sentence of answers.flatMap(({ text }) => split(text))) {
      if (!isStatement(sentence)) continue;
      take('value', valueQuestion(sentence), at);
      take('reason', reasonQuestion(sentence), at);
    }
    const reference = findReference(at);
    if (reference !== null) questions.set(reference.text, reference);
  }
  return [...questions.values()].reverse();

  function findReference(at: number): Question | null {
    const { read, turn } = turns[at] as PastTurn;
    const typed = typedText(read.user).replace(/\s+/g, ' ').trim();
    const words = contentTokens(typed);
    if (typed.length > PROMPT_CHARS || words.length < LEAST_WORDS.reference) return null;
    for (const [, code, name] of typed.matchAll(IDENTIFIER)) {
      const answer = code ?? name ?? '';
      const wanted = getLetters(answer);
      if (wanted.length < 5) continue;
      const naming = [...turns.keys()].slice(0, at).filter((place) => letters[place]?.includes(wanted));
      const last = naming.at(-1);
      if (last === undefined || naming.length > MOST_RIGHT) continue;
      const right = naming.filter((place) => findShare(words, place) >= NAMED_SHARE);
      if (right.length === 0) continue;
      if (turns[last]?.turn.sessionId === turn.sessionId && at - last < NEAR_TURNS) continue;
      return { kind: 'reference', text: typed, answer, before: at, right };
    }
    return null;
  }
}

/** Says something whole that is true later too. */
function isStatement(sentence: string): boolean {
  const [least, most] = SENTENCE_CHARS;
  if (sentence.length < least || sentence.length > most) return false;
  return !isAsking(sentence) && !isNoise(sentence, 'assistant') && !DANGLING.test(sentence) && !PASSING.test(sentence);
}

/** At most `limit`: the kinds in turn, each turn once, and from many sessions before more of one. */
export function chooseQuestions(questions: readonly Question[], turns: readonly PastTurn[], limit: number): Question[] {
  const kinds = [...grouped(questions, ({ kind }) => kind).values()];
  const rounds = Math.max(0, ...kinds.map((own) => own.length));
  const inTurn = Array.from({ length: rounds }, (_, round) => kinds.flatMap((own) => own[round] ?? [])).flat();
  const chosen = new Map<number, Question>();
  const bySession = new Map<string, number>();
  for (const most of [Math.ceil(limit / 6), limit]) {
    for (const question of inTurn) {
      const [at = 0] = question.right;
      const sessionId = turns[at]?.turn.sessionId ?? '';
      const count = bySession.get(sessionId) ?? 0;
      if (chosen.size === limit || chosen.has(at) || count >= most) continue;
      bySession.set(sessionId, count + 1);
      chosen.set(at, question);
    }
  }
  return [...chosen.values()];
}

/** Turns shown to a model at once, and what a turn has to say to be worth it. */
const PER_CALL = 8;
const LEAST_CHARS = 400;

/** Asks a model for questions about turns from all over the history, in at most `budget.calls` calls, which it uses up. */
export async function askForQuestions(
  turns: readonly PastTurn[],
  model: Pick<LanguageModel, 'ask'>,
  options: { budget: { calls: number }; limit: number; fence: () => string; signal: AbortSignal },
): Promise<Question[]> {
  const { budget, limit, fence, signal } = options;
  const worth = turns.flatMap(({ text }, at) => (text.length < LEAST_CHARS ? [] : [at]));
  const wanted = Math.min(worth.length, budget.calls * PER_CALL, Math.ceil(limit * 1.5));
  const chosen = Array.from({ length: wanted }, (_, at) => worth[Math.floor((at * worth.length) / wanted)] as number);
  const questions: Question[] = [];
  for (let from = 0; from < chosen.length && questions.length < limit && budget.calls > 0; from += PER_CALL) {
    budget.calls -= 1;
    const batch = chosen.slice(from, from + PER_CALL);
    const reads = batch.map((at) => (turns[at] as PastTurn).read);
    for (const { turnId, question, answer } of (await model.ask?.(questionsPrompt(reads, fence()), signal)) ?? []) {
      const at = batch.find((place) => turns[place]?.read.turnId === turnId) as number;
      const isTold = getLetters(turns[at]?.text ?? '').includes(getLetters(answer)) && getLetters(answer) !== '';
      if (isTold) questions.push({ kind: 'model', text: question, answer, before: turns.length, right: [at] });
    }
  }
  return questions.slice(0, limit);
}
