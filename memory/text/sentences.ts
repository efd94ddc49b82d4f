import type { Origin } from '../../common/turn.ts';
import type { TurnText } from '../model/turn.ts';
import { isContinuation } from './compaction-summary.ts';

/** A sentence of a turn with its features. */
export interface Sentence {
  readonly text: string;
  readonly by: 'user' | 'assistant';
  readonly origin: Origin;
  /** Id of its turn. */
  readonly turn: string;
  /** Above 0 if worth remembering. */
  readonly worth: number;
  /** Figures, names, paths and identifiers. */
  readonly values: readonly string[];
}

/** Longer ones are pasted data or joined lists. */
const MAX_CHARS = 320;
/** Only this much of a text is read. */
const READ_CHARS = 100_000;

export const DECISION =
  /\b(?:decid\w+|chose|agreed|must|never|always|prefer\w*|instead of|rather than|switch\w* to|we (?:use|will|'ll|are using|need)|let's use|going with|from now on|only ever|do not|don't|should|remember|because|root cause|turned out|fixed by|the fix)\b|(?:반드시|항상|결정|기억)|(?:必须|决定|总是)|(?:必ず|決定|常に)|(?<!\p{L})(?:immer|nie|niemals|müssen|entschieden|Entscheidung|ab (?:jetzt|sofort)|statt|stattdessen|toujours|jamais|décid\p{L}+|désormais|plutôt que|siempre|nunca|en vez de|a partir de ahora)(?!\p{L})/iu;
export const STANDING =
  /\b(?:always|never|from now on|prefer\w*|remember|as a rule|every time|don't ever|do not ever)\b|(?<!\p{L})(?:immer|nie|niemals|ab (?:jetzt|sofort)|toujours|jamais|désormais|siempre|nunca|a partir de ahora)(?!\p{L})/iu;
/** Announces a statement. */
const LEAD_IN =
  /^(?:(?:by the way|so that you know|just so you know|for the record|before i forget(?: it)?|fyi|note that|please note(?: that)?|one more thing|as a reminder)\b[,:]?\s+|(?:oh|well|so|right|also|and|btw)[,:]\s+)+/i;
const FILLER =
  /^(?:let me|now |great|sure|perfect|i'll |i will |i need to|looking at|okay|ok\b|thanks|thank you|you're right|good\b|first,? let|here's|here is)/i;

/** An ordinal such as "3. Dezember" does not end a sentence. */
const SENTENCE_END =
  /(?<=[.!?])(?<!(?<!\d)\d{1,2}\.(?=\s(?:Jan|Feb|Mär|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Quartal)))\s+(?=[\p{Lu}\p{N}`"'(])|(?<=[。！？])/u;
const VALUE = /\d|[\p{L}][./_=]\p{L}|\p{Ll}\p{Lu}|^\p{Lu}[\p{Lu}\d_]+$/u;
const NAME = /^\p{Lu}\p{Ll}+$/u;

/** Each feature counts once, since a line full of figures is a table, not a fact. */
const SIGNS: readonly (readonly [RegExp, number])[] = [
  [DECISION, 3],
  [
    /\b(?:port|version|timeout|limit|threshold|budget|deadline|password policy|region|branch|table|column|queue)\b/i,
    1.5,
  ],
  [/(?<![\p{L}\p{N}_])\d[\d.,:_%]*/u, 1.5],
  [
    /(?:[\w@~.-]+\/)+[\w.-]+|\b[\w-]+\.(?:ts|tsx|js|jsx|mjs|py|rs|go|java|rb|sql|ya?ml|json|toml|md|sh|css|html|env)\b/,
    2,
  ],
  [/\b[a-z]+[A-Z]\w+|\b\w+_\w+\b|\b[A-Z][A-Z0-9_]{2,}\b|`[^`]+`/, 1.5],
  [/\b(?:E[A-Z]{3,}|[A-Z]\w*(?:Error|Exception)|(?:HTTP |status )?[45]\d\d)\b/, 1.5],
  [
    /(?:^|\s)--?[a-z][\w-]+|\b(?:npm|pnpm|yarn|git|docker|cargo|pytest) [a-z]|\bmake (?!sure|use|sense|it|an?|the|th\w+|no|every\w*)[a-z]|\bgo (?:build|run|test|mod|get|vet|fmt|install|generate)\b/,
    1.5,
  ],
  [/(?<=\p{Ll}[\p{L}\p{N}]*,? )\p{Lu}\p{Ll}+/u, 1],
];

const sentencesIn = new WeakMap<TurnText, readonly Sentence[]>();

/** Sentences of user and assistant in order, without tool traffic and code blocks. */
export function sentencesOf(turn: TurnText): readonly Sentence[] {
  const known = sentencesIn.get(turn) ?? taken(turn);
  sentencesIn.set(turn, known);
  return known;
}

const usersIn = new WeakMap<TurnText, readonly Sentence[]>();

export function userSentences(turn: TurnText): readonly Sentence[] {
  const known = usersIn.get(turn) ?? read(turn.user, 'user', turn.userOrigin ?? 'user', turn.turnId);
  usersIn.set(turn, known);
  return known;
}

function taken(turn: TurnText): Sentence[] {
  // The turns behind a compaction summary are remembered themselves.
  const said = turn.parts.filter((part) => part.kind === 'assistant' && !isContinuation(part.text));
  return [...userSentences(turn), ...said.flatMap((part) => read(part.text, 'assistant', part.origin, turn.turnId))];
}

function read(text: string, by: Sentence['by'], origin: Origin, turn: string): Sentence[] {
  return split(text.slice(0, READ_CHARS)).map((sentence, index) => ({
    text: sentence,
    by,
    origin,
    turn,
    worth: worthOf(sentence, by, index),
    values: valuesOf(sentence),
  }));
}

/** Distinct figures, names, paths and identifiers as written. */
export function valuesOf(text: string): string[] {
  const words = text.match(/[\p{L}\p{N}_@][\p{L}\p{N}_@./:=-]*/gu) ?? [];
  const bare = words.map((word) => word.replace(/[./:-]+$/, ''));
  return [...new Set(bare.filter((word, at) => VALUE.test(word) || (at > 0 && NAME.test(word))))];
}

/** Sentences of one paragraph. */
export function splitSentences(paragraph: string): string[] {
  return paragraph
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}

/** Sentences and list items without markdown syntax. */
export function split(text: string): string[] {
  const prose = text.replace(/^ {0,3}(```|~~~)[^\n]*\n[\s\S]*?(?:^ {0,3}\1\s*$|$(?![\s\S]))/gm, '');
  return prose
    .split(/\n+/)
    .flatMap((line) => bare(line).split(SENTENCE_END))
    .map((sentence) => sentence.trim().replace(LEAD_IN, ''))
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}

function bare(line: string): string {
  return line
    .replace(/^\s*(?:[-*+•]|\d+[.)]|#{1,6}|>)\s+/, '')
    .replace(/\*\*|__/g, '')
    .replace(/\s+/g, ' ');
}

/** Whether the turn has text but all of it is noise. */
export function isIdle(turn: TurnText): boolean {
  const said = sentencesOf(turn);
  return said.length > 0 && said.every(({ text, by }) => isEmpty(text, by) || isSmall(text, by));
}

export function isEmpty(text: string, by: Sentence['by']): boolean {
  return isNoise(text, by, DECISION.test(text));
}

/** Too short, or an assistant's agreement. */
function isSmall(text: string, by: Sentence['by']): boolean {
  return text.length < 12 || (by === 'assistant' && FILLER.test(text) && text.length < 60);
}

/** Above 0 if worth remembering; `index` is the sentence's position. */
export function worthOf(text: string, by: Sentence['by'], index: number): number {
  if (text.length > MAX_CHARS * 2 || isEmpty(text, by)) return -1;
  const signs = SIGNS.reduce((sum, [sign, weight]) => sum + (sign.test(text) ? weight : 0), 0);
  const voice = by === 'user' ? 1 : 0;
  const opening = index === 0 ? 0.5 : 0;
  const filler = FILLER.test(text) ? 2.5 : 0;
  const shape = text.length > MAX_CHARS ? 4 : text.length < 12 ? 2 : 0;
  const question = text.endsWith('?') ? 1.5 : 0;
  return signs + voice + opening - filler - shape - question;
}

/** Filler, or true only at the moment of speaking, unless the sentence contains a decision. */
const PASSING: readonly RegExp[] = [
  /^\W*(?:heartbeat|ping|pong|keep-?alive|tick|noop|no-op|beep)(?:[\W\d]|ok|ack)*$/i,
  /\bheartbeat[_ ]?(?:ok|ack\w*|received)\b|\b(?:periodic|scheduled|automatic|routine) (?:heartbeat|keep-?alive|check-in|poll|wake-?up)\b/i,
  /\b(?:nothing (?:new |else |further )?to (?:report|do)|no (?:new |pending |further )?(?:messages|events|tasks|changes|notifications) (?:since|to report|pending|found|arrived|yet)|still (?:alive|here|idle|quiet|nothing))\b/i,
  /^\W*(?:request interrupted by user|api error\b|conversation compacted|no response requested)/i,
  /^\W*(?:status|health(?: ?check)?|system)\s*[:=]\s*(?:ok|idle|alive|green|healthy|nominal)\W*$/i,
  /\b(?:is|are|am|'s|'re|was) (?:still |now |currently )?(?:running|compiling|downloading|in progress|uploading|installing|loading|spinning up|warming up|halfway|queued)\b(?! (?:on|at|under|with|behind|in|as|from|by)\b)/i,
  /\b(?:waiting|wait) for (?:the |a |an |its? |your )?(?:build|tests?|lock|response|output|it|process|download|server|command|install\w*|next)\b/i,
  /\b\d+ ?(?:\/|of|out of) ?\d+ (?:\w+ )?(?:done|complete[d]?|finished|so far|processed|remaining)\b|\b\d+ ?(?:%|percent) (?:is )?(?:done|complete|finished|through|downloaded|used up)\b/i,
  /\b(?:pid|process id) ?[:#=]? ?\d+|\b(?:eta|elapsed|time left|remaining time|uptime)\b\s*(?:is|[:=])?\s*(?:about )?\d/i,
  /\bi(?:'m| am) (?:now |currently |just )?(?:reading|looking|checking|opening|running|editing|scrolling|going to|about to|on line)\b/i,
  /\b(?:the )?cursor (?:is|stands) (?:at|on)\b|\battempt \d+ of \d+\b|\b(?:right now|at (?:the|this) moment|as we speak)\b.*\b(?:line|step|screen|tab|window|prompt|spinner|terminal|branch is clean)\b/i,
];

/** A slash command without further text. */
const COMMAND = /^\/[\w:-]+$/;

/** Instructions to an agent, which must not be mistaken for the user's wishes. */
const INSTRUCTIONS =
  /\byou are (?:claude\b|an? (?:[\w'-]+ ){0,3}(?:ai|language model|coding agent|cli agent)\b)|\bi(?:'m| am) (?:claude\b|an? (?:[\w'-]+ ){0,2}(?:ai|language model)\b)|\bas an ai\b|\b(?:my|your) (?:system prompt|(?:core |system |hidden |developer |own )?(?:instructions|guidelines|directives)|knowledge cutoff|tool list)\b|\b(?:the )?system prompt\b.*\b(?:says?|states?|tells?|requires?|begins?|contains?|asks?)\b/i;
/** The same in the assistant's words; users may well talk about building agents. */
const OWN_RULES =
  /\b(?:the )?(?:assistant|model|agent|claude) (?:must|should|will|may|is (?:instructed|expected|told))\b/i;

/** An assistant's guess about the user. */
const PROFILE =
  /\b(?:you|the (?:user|developer|human)) (?:(?:probably|likely|clearly|apparently|also|generally|usually|really|obviously) )?(?:seems?|appears? to|sounds?|comes? across|enjoys?|loves?|likes?|prefers?|values?|lives?|grew up|works? as|(?:is|are) an? (?:[\w-]+ ){0,3}(?:developer|engineer|person|designer|founder|parent|student|manager|enthusiast|expert|beginner))\b|\buser(?:'s)? (?:profile|persona|preferences?|personality|mood)\b|\b(?:your|the (?:user|developer|human)'s) (?:name|age|hometown|family|hobby|hobbies|favou?rite|personality|mood|communication style|temperament)\b/i;

/**
 * Whether a sentence is irrelevant after its turn: progress reports, instructions to an agent, guesses about the user.
 *
 * @param decides  the sentence states a decision or a rule
 */
function isNoise(sentence: string, by: 'user' | 'assistant', decides: boolean): boolean {
  if (INSTRUCTIONS.test(sentence) || COMMAND.test(sentence)) return true;
  if (by === 'assistant' && (OWN_RULES.test(sentence) || PROFILE.test(sentence))) return true;
  return !decides && PASSING.some((sign) => sign.test(sentence));
}
