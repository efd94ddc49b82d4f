import { trimEnd } from '../../common/text.ts';
import { isGerman } from './keywords.ts';
import { STOP_WORDS } from './tokenizer.ts';

/** A rule that outlives the task. */
export const STANDING =
  /(?:^|[,;:.!] |\b(?:we|you|i|please|must|and|but) )(?:always|never|only ever)\b|\b(?:from now on|as a rule|every time|(?:don'?t|do not) ever|going forward|(?:i|we) prefer|(?:please|must) not ever)\b|^(?:please )?remember\b|(?<!\p{L})(?:immer|nie|niemals|ab (?:jetzt|sofort)|grundsätzlich|toujours|jamais|désormais|siempre|nunca|a partir de ahora)(?!\p{L})|(?:반드시|항상|절대|앞으로는?|总是|永远|以后都|必须|必ず|常に)/iu;
export const NEGATION =
  /\b(?:no|not|never|none|without|cannot|\wn't|neither|nor|no longer|instead of|rather than|rejected|removed|dropped)\b|(?<!\p{L})(?:nie|niemals|nicht|kein\p{L}{0,2}|ohne|statt|jamais|pas|sans|nunca|no|sin|tampoco)(?!\p{L})|(?:不|没|别|无|未|안 |않|없|말고|지 ?마|ない|ません)/iu;
/** Takes back what was said before. */
export const REVISES =
  /^(?:(?:hm+|ah|oh|ok(?:ay)?|sorry|oder|or|und|and|also|y|actually)[\s,.…]+){0,3}(?:(?:(?:no|nee?|nö|nein|nah|nope)[\s,.]+(?:wait|hang on|hold on|moment|warte|espera)|scratch (?:that|this|the|those)|on second thoughts?|thinking again|warte(?: mal)?,? (?:doch|lieber|nein)|doch (?:nicht|kein\p{L}{0,2}|lieber|wieder)|mejor dicho|espera,? (?:no|mejor)|pensándolo bien)(?!\p{L})|等等|等一下|不对|잠깐만|아니다)/iu;
export const ASKS =
  /^(?:(?:so|and|but|or|ok(?:ay)?|question|also|now)[\s,:]+){0,2}(?:what(?! (?:i|we) (?:want|need)\b)|why|how|when|where|who|which|(?:can|could|would|should|is|are|do|does|did|has|have|was|were)(?! (?:not|never|always|be)\b)|wie|was|warum|wo|wer|wann|welche[rsmn]?|kann|könnte|sollen|sollte|ist|gibt|qué|cómo|por qué|dónde|cuál|puede[sn]?)(?![\p{L}'])/iu;
/** Announces a statement. */
export const LEAD_IN =
  /^(?:(?:by the way|so that you know|just so you know|for the record|before i forget(?: it)?|fyi|note that|please note(?: that)?|one more thing|as a reminder)\b(?:[,:]| [-–—])?\s+|(?:oh|well|so|right|also|and|btw)[,:]\s+)+/i;

/** Commands that Claude Code runs itself, in front of the prompt that was typed after them. */
const CLIENT_COMMANDS =
  /^(?:\/(?:add-dir|branch|btw|clear|color|compact|config|context|effort|export|fast|fork|mcp|model|output-style|permissions|plugin|rename|resume|usage)\b[^\n]{0,200}\n\s{1,9}){1,9}(?=\S)/;
export const withoutCommands = (prompt: string): string => prompt.replace(CLIENT_COMMANDS, '');

/** An ordinal such as "3. Dezember" and an abbreviation end no sentence; many people begin none with a capital. */
const SENTENCE_END =
  /(?<=[.!?])(?<!(?<![\p{L}\p{N}])(?:[Pp]rof|[Dd]ra?|[Mm]rs?|Ms|[Ss]ra?|vs|cf|e\.g|i\.e|approx|z\. ?B|bzw|ca)\.)(?:(?<!(?<!\d)\d{1,2}\.(?=\s(?:Jan|Feb|Mär|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Quartal)))\s+(?=[\p{Lu}\p{N}`"'(])|(?<=(?:[\p{L}\p{N}]{3}|["'`)])\.|[\p{L}\p{N}"'`)][!?])\s+(?=\p{Ll}))|(?<=[。！？])/u;
const FENCE = /^ {0,3}(```|~~~)/;
const MARKDOWN = /^\s*(?:[-*+•]|\d+[.)]|#{1,6}|>)\s+|\*\*|__/g;
const WORD = /(?:[~.]{0,2}\/\.?|\.)?[\p{L}\p{N}_@](?:[\p{L}\p{N}_@./:=-]|,(?=\d{3}(?!\d)))*/gu;
/** Letters that no space sets apart from a figure or a name. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}]/gu;
const VALUE = /\d|^[~./]{1,4}\p{L}|[\p{L}][./_=]\p{L}|\p{Ll}\p{Lu}|^\p{Lu}[\p{Lu}\d_]+$/u;
const NAME = /^\p{Lu}\p{Ll}+$/u;
const TITLE = /(?:^|[.;] )(?:(?:\p{Lu}\p{Ll}+|of|the|and|to|for|in) ){1,5}\p{Lu}\p{Ll}+(?=:)/gu;
/** Ends what comes before the first word of a sentence or an item. */
const OPENING = /(?:^|[.!?:;…\n→—|]| - )[\s"'“”‘’()[\]*_`>#+-]{0,11}$/u;
const OPENING_CHARS = 12;

export const isQuestion = (text: string): boolean => /[?？]["'”)\]*]{0,3}$|[吗呢]$|(?:까요|나요|인가요)$/.test(text);

/** The work waits for the user's answer. */
const WAITS =
  /\b(?:need|like|have) (?:to know (?:if|whether|which|what|how)|your (?:go-ahead|approval|decision|input|ok))\b/i;

export const asksUser = (text: string): boolean => isQuestion(text) || WAITS.test(text);

/** Asks, as people type it: with or without a question mark. */
export const isAsking = (text: string): boolean => isQuestion(text) || ASKS.test(text) || text.startsWith('¿');

/** Distinct figures, names, paths and identifiers as written; no noun of a German text, no capital that opens a sentence, no number of a list. */
export function getValues(text: string): string[] {
  const values = new Set<string>();
  const spaced = text.replace(UNSPACED, ' ').replace(TITLE, (title) => title.toLowerCase());
  for (const { 0: whole, index } of spaced.matchAll(WORD)) {
    const word = trimEnd(whole, './:-');
    if (isGrammar(word) || !(VALUE.test(word) || (NAME.test(word) && !isGerman(text)))) continue;
    const opens = OPENING.test(spaced.slice(Math.max(0, index - OPENING_CHARS), index));
    if (opens && (NAME.test(word) || (/^\d{1,2}$/.test(word) && /[.):]/.test(spaced[index + word.length] ?? ''))))
      continue;
    values.add(word);
  }
  return [...values];
}

/** A word that says nothing by itself, capitals or not. */
const isGrammar = (word: string): boolean => STOP_WORDS.has(word.toLowerCase()) || /^(?:e\.g|i\.e)$/i.test(word);

export function splitSentences(paragraph: string): string[] {
  const sentences = paragraph.split(SENTENCE_END).map((sentence) => sentence.trim().replace(LEAD_IN, ''));
  return sentences.filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}

export interface CodeBlock {
  /** What follows the opening fence. */
  readonly language: string;
  readonly lines: string[];
}

/** Lines outside of code blocks, and those blocks; one without an end extends to the end of the text. */
export function separateCode(text: string): { readonly prose: string[]; readonly blocks: CodeBlock[] } {
  const prose: string[] = [];
  const blocks: CodeBlock[] = [];
  let open = '';
  for (const line of text.split('\n')) {
    const [opening = '', fence = ''] = FENCE.exec(line) ?? [];
    const rest = line.slice(opening.length).trim();
    if (open === '' && fence !== '') {
      open = fence;
      blocks.push({ language: rest, lines: [] });
    } else if (open === '') prose.push(line);
    else if (open === fence && rest === '') open = '';
    else blocks.at(-1)?.lines.push(line);
  }
  return { prose, blocks };
}

/** Sentences and list items without markdown syntax. */
export function split(text: string): string[] {
  return separateCode(text)
    .prose.filter((line) => line !== '')
    .flatMap((line) => splitSentences(line.replace(MARKDOWN, '').replace(/\s+/g, ' ')));
}

/** The words before the verb of a statement. */
const SUBJECT =
  /^(?:the |our |your |this |an? |der |die |das |unsere? |el |la |los |las )?([^.,;:!?()]{2,60}?) (?:is|are|was|were|has|have|had|uses?|needs?|runs?|listens?|takes?|lives?|must|should|would|will|can(?:not)?|could|may|might|returns?|throws?|fails?|gets?|keeps?|stays?|means?|contains?|requires?|defaults?|points?|holds?|does|do|now|went|became|belongs?|starts?|stops?|costs?|handles?|calls?|writes?|reads?|sets?|ist|sind|hat|haben|läuft|liegt|braucht|nutzt|verwendet|muss|wird|soll|es|son|está|usa|corre|debe|tiene)(?![\p{L}])/iu;
const SCRIPT_SUBJECT = /^([^，。、,.]{1,20}?)(?:是|使用|用|在|必须|需要|监听|은 |는 |이 |가 |は|が)/u;
/** Stands for something said before. */
const POINTS =
  /^(?:it|this|that|these|those|there|they|he|she|we|you|i|here|what|which|and|but|so|if|when|now|then|to|try|run|all|each|both|once|my|for|in|at|on|by|right|with|as|after|before|since|while|yes|no|how|let|one|some|most|only|or|not|just|don't|yeah|yep|ok|okay|option|like|currently|where|given|instead|their|its|is|means|keep|would|could|es|das|dies|ich|wir|sie|du|eso|esto|yo|这|那|我|你|它|이것|그것|나|저)\b/iu;

/** What a statement is about: its subject, without article; null where it names none. */
export function getConcept(sentence: string): string | null {
  const [, subject = ''] = SUBJECT.exec(sentence) ?? SCRIPT_SUBJECT.exec(sentence) ?? [];
  const bare = subject.replace(/[`"“”*]/g, '').trim();
  return bare === '' || POINTS.test(bare) || bare.split(' ').length > 5 ? null : bare;
}

/** What a person has one of at a time. */
export interface PersonAttribute {
  readonly name: 'role' | 'employer' | 'location';
  /** Lower case. */
  readonly subject: string;
}

const PERSON_ATTRIBUTES: Readonly<Record<PersonAttribute['name'], RegExp>> = {
  role: /^(?:from now on |as of [^,]{1,30}, |now )?(I|my (?:boss|manager|colleague|teammate)|\p{Lu}[\p{L}'’-]{1,30}(?: \p{Lu}[\p{L}'’-]{1,30})?) (?:am|is|was|became|becomes|took over as|works? as|moved? (?:on )?to(?: be)?|(?:has|have|was|is|got) (?:been )?(?:promoted|appointed)(?: to)?)(?: now)?(?: again)?(?: the| our| an?)? (?:[\p{L}\d/&-]{1,30} ){0,4}(?:engineer|developer|manager|lead|leader|designer|owner|architect|director|head|cto|ceo|cfo|vp|admin|administrator|analyst|maintainer|sre|founder|scientist|intern|consultant|reviewer|on-?call|chief|principal)(?![\p{L}])/iu,
  employer:
    /^(I|my (?:boss|manager|colleague|teammate)|\p{Lu}[\p{L}'’-]{1,30}(?: \p{Lu}[\p{L}'’-]{1,30})?) (?:now )?(?:works?(?: now)? (?:for|at)|joined|left|am (?:employed )?(?:at|by)) \p{Lu}/u,
  location:
    /^(I|my (?:boss|manager|colleague|teammate)|\p{Lu}[\p{L}'’-]{1,30}(?: \p{Lu}[\p{L}'’-]{1,30})?) (?:now )?(?:(?:(?:lives?|sits?)(?: now)?|(?:am|is)(?: now)? (?:based|located)) in|moved to|relocated to) \p{Lu}/u,
};

/** The person whose role, employer or place a statement tells; null where it tells none. */
export function findPerson(sentence: string): PersonAttribute | null {
  for (const name of ['role', 'employer', 'location'] as const) {
    const subject = PERSON_ATTRIBUTES[name].exec(sentence)?.[1];
    if (subject !== undefined) return { name, subject: subject.toLowerCase() };
  }
  return null;
}

/** States a decision, a reason or a condition, whatever else it says. */
const DECIDES = /\b(?:decid\w+|must|never|always|should|because|root cause|agreed|while|whenever|if|unless)\b/i;

/** Filler, or true only at the moment of speaking, unless the sentence contains a decision. */
const PASSING: readonly RegExp[] = [
  /^\W*(?:heartbeat|ping|pong|keep-?alive|tick|noop|no-op|beep)(?:[\W\d]|ok|ack)*$/i,
  /\bheartbeat[_ ]?(?:ok|ack\w*|received)\b|\b(?:periodic|scheduled|automatic|routine) (?:heartbeat|keep-?alive|check-in|poll|wake-?up)\b/i,
  /\b(?:nothing (?:new |else |further )?to (?:report|do)|no (?:new |pending |further )?(?:messages|events|tasks|changes|notifications) (?:since|to report|pending|found|arrived|yet)|still (?:alive|here|idle|quiet|nothing))\b/i,
  /^\W*(?:request interrupted by user|api error\b|conversation compacted|no response requested)/i,
  /^\W*(?:status|health(?: ?check)?|system)\s*[:=]\s*(?:ok|idle|alive|green|healthy|nominal)\W*$/i,
  /(?<!\byou ?)(?:\b(?:is|are|am|was)|'s|'re) (?:still |now |currently )?(?:running|compiling|downloading|in progress|uploading|installing|loading|spinning up|warming up|halfway|queued)\b(?! (?:on|at|under|with|behind|in|as|from|by)\b)/i,
  /\b(?:waiting|wait) for (?:the |a |an |its? |your )?(?:build|tests?|lock|response|output|it|process|download|server|command|install\w*|next)\b/i,
  /\b\d{1,12} ?(?:\/|of|out of) ?\d{1,12} (?:\w{1,30} )?(?:done|complete[d]?|finished|so far|processed|remaining)\b|\b\d{1,12} ?(?:%|percent) (?:is )?(?:done|complete|finished|through|downloaded|used up)\b/i,
  /\b(?:pid|process id) ?[:#=]? ?\d+|\b(?:eta|elapsed|time left|remaining time|uptime)\b\s*(?:(?:is|[:=])\s*)?(?:about )?\d/i,
  /\bi(?:'m| am) (?:now |currently |just )?(?:reading|looking|checking|opening|running|editing|scrolling|going to|about to|on line)\b/i,
  /\b(?:the )?cursor (?:is|stands) (?:at|on)\b|\battempt \d+ of \d+\b|\b(?:right now|at (?:the|this) moment|as we speak)\b.{0,200}\b(?:line|step|screen|tab|window|prompt|spinner|terminal|branch is clean)\b/i,
];

/** A slash command without further text. */
const COMMAND = /^\/[\w:-]+$/;

/** Instructions to an agent, which must not be mistaken for the user's wishes. */
const INSTRUCTIONS =
  /\byou are (?:claude\b|an? (?:[\w'-]{1,30} ){0,3}(?:ai|language model|coding agent|cli agent)\b)|\bi(?:'m| am) (?:claude\b|an? (?:[\w'-]{1,30} ){0,2}(?:ai|language model)\b)|\bas an ai\b|\b(?:my|your) (?:system prompt|(?:core |system |hidden |developer |own )?(?:instructions|guidelines|directives)|knowledge cutoff|tool list)\b|\b(?:the )?system prompt\b.{0,200}\b(?:says?|states?|tells?|requires?|begins?|contains?|asks?)\b/i;
/** The same in the assistant's words; users may well talk about building agents. */
const OWN_RULES =
  /\b(?:the )?(?:assistant|claude|(?:language |ai )(?:model|agent)) (?:must|should|will|may|is (?:instructed|expected|told))\b/i;

/** An assistant's guess about the user. */
const PROFILE =
  /(?<!\b(?:do|did|would|if|unless|as|wh\w{2,6}) )\b(?:you|the (?:user|developer|human)) (?:(?:probably|likely|clearly|apparently|also|generally|usually|really|obviously) )?(?:seems?|appears? to|sounds?|comes? across|(?:enjoys?|loves?|likes?|prefers?|values?)(?! (?:an?|the|this|that|it|one)\b)|lives?|grew up|works? as|(?:is|are) an? (?:[\w-]{1,30} ){0,3}(?:developer|engineer|person|designer|founder|parent|student|manager|enthusiast|expert|beginner))\b|^user (?:profile|persona|preferences?|personality|mood):|\b(?:your|the (?:user|developer|human)'s) (?:hometown|hobby|hobbies|favou?rite|personality|mood|communication style|temperament)\b/i;

/** Whether a sentence is irrelevant after its turn: progress reports, instructions to an agent, guesses about the user. */
export function isNoise(sentence: string, by: 'user' | 'assistant'): boolean {
  if (INSTRUCTIONS.test(sentence) || COMMAND.test(sentence)) return true;
  if (by === 'assistant' && (OWN_RULES.test(sentence) || PROFILE.test(sentence))) return true;
  return !DECIDES.test(sentence) && PASSING.some((sign) => sign.test(sentence));
}

/** Words that only ask for what follows. */
const POLITE =
  /^(?:(?:ok(?:ay)?|yes|yeah|sure|hi|hey|hello|claude|great|thanks|please|so|and|now|also|well|question|can you|could you|would you|can we|could we|should we|let'?s|i(?:'d| would) like (?:you )?to|i want (?:you )?to|u[mh]+|(?:i've been|i was) thinking (?:about|that)|bitte|(?:kannst|könntest) du(?: (?:mir|uns|mal))?|por favor|pued[eo]s|podrías|peux-tu|pourrais-tu)(?![\p{L}\p{N}'])[\s,.!:-]{0,20}){1,6}/iu;

export const findTask = (text: string): string => text.replace(POLITE, '');
