import { trimEnd } from '../../common/text.ts';
import { hasPairedScript, tokenize } from '../text/tokenizer.ts';

/** What a sentence is about that gives something another value, in its words; '' for any other sentence. */
export function getChanged(text: string): string {
  const subject = getEnding(text)?.assertion?.subject ?? [];
  const changed = (text.match(WORD) ?? []).filter((word) => getUnits(word).some((unit) => subject.includes(unit)));
  return changed.map((word) => word.replace(/[.:]+$/, '')).join(' ');
}

/** Whether a sentence says which value an attribute of a named thing has. */
export function assertsValue(text: string): boolean {
  const assertion = getAssertion(getClaim(text, ENDING_RULES), ENDING_RULES);
  return assertion !== null && assertion.kind !== 'word' && assertion.subject.length > 0;
}

/** How a sentence ends what others say: something is given up or replaced, or an attribute has a new value. */
export interface Ending {
  /** Words that an ended statement has. */
  readonly shared: readonly string[];
  /** What is given up, and what comes instead. */
  readonly old: readonly string[];
  readonly fresh: readonly string[];
  readonly assertion: Assertion | null;
}

/** Whose attribute has which value. */
interface Assertion {
  readonly kind: 'figure' | 'path' | 'name' | 'word';
  readonly value: string;
  readonly subject: readonly string[];
  readonly attributes: readonly string[];
  /** Says that it changed. */
  readonly isNew: boolean;
}

/** Longer texts are pasted. */
const MAX_CHARS = 400;
const NAME = String.raw`(?:--?)?[\p{L}\p{N}_@][\p{L}\p{N}_@./:#+%-]*(?:\(\))?`;
const STOP =
  '(?:to|with|by|for|in|on|from|at|and|or|as|because|since|so|when|everywhere|any|now|is|are|was|durch|für|por|para|auf)';
/** Up to four words before a preposition. */
const TERM = `(?:(?:using|use|support for|our|port|version|der|die|das|den|el|la|los|las) )*((?!${STOP} )${NAME}(?: (?!${STOP}\\b)${NAME}){0,3})`;
const CHANGE =
  '(?:switch|mov|migrat|chang|go|convert|upgrad|downgrad|bump|rais|lower|increas|decreas|reduc|set|wechsel|cambia|migra|pasa)\\p{L}*';
/** The first term is given up, the second comes instead. */
const REPLACEMENTS = [
  '\\b(?:instead of|rather than|in place of|anstelle von|anstatt|statt|en (?:lugar|vez) de) TERM',
  ', (?:and )?not TERM(?=[.,;!]?$| (?:in|for|on) )',
  '\\b(?:replac|swap|substitut|ersetz|reempla|sustitu)\\p{L}* TERM (?:with|by|for|durch|por) TERM',
  `\\b${CHANGE} (?<about>.{0,60}?)\\b(?:from|von|de) TERM (?:to|auf|zu|nach|a) TERM`,
  '\\brenam\\p{L}* TERM (?:to|as|into) TERM',
  '(?<!\\S)TERM (?:is|was|has been|got) (?:now called|renamed)(?: to)? TERM',
  '\\bmov\\p{L}* (?:off|away from) TERM',
  '(?<!\\S)(?:drop(?:ped)?|removed?|ditch(?:ed)?|retired?|abandon(?:ed)?|g[eo]t rid of) TERM',
  '(?:代替|取代|而不是) ?TERM',
  `(${NAME}) ?대신 ?(${NAME})`,
].map((form) => new RegExp(form.replaceAll('TERM', TERM), 'iu'));
/** The object of a use, and what stands before "instead of", is what comes instead. */
const FRESH = new RegExp(
  `(?:\\buse|\\busing|\\busamos|\\bnehmen wir(?: jetzt)?|用) ?(${NAME})|(${NAME})(?: now| jetzt)?[, ]*$`,
  'giu',
);
/** All that the sentence says is given up. */
const NEGATION =
  /\bno (?:longer|more)\b|\b(?:stop(?:ped)?|quit) (?=\w+ing\b)|(?:n['’]t|\b(?:not|no|never))\b.*\bany ?(?:more|longer)\b|^never\b|\bnicht mehr\b|\bkeine?n?\b.*\bmehr\b|\bya no\b|\bdej\w+ de\b|不再|弃用|더 이상/iu;
export const NEGATIVE = /n['’]t\b|\b(?:not?|never|without|stop(?:ped)?|nicht|keine?n?|nunca)\b|不|没|않|안 /iu;
const NOW =
  /\b(?:now|from now on|instead|actually|correction|as of|jetzt|ab sofort|ahora)\b|现在|改为|改成|이제|\b(?:set|change|raise|lower|bump|increase|decrease|reduce|move|update|upgrade|downgrade|switche?)[ds]?\b.* to (?=\S+\W*$|\S+ \S+\W*$)/iu;
/** Orders a value: `make the free trial 7 days`. */
const ORDER =
  /^(?:(?:and|now|please|ok(?:ay)?|let's)[, ]+)*(?:make|set|mach\p{L}{0,2}|setz\p{L}{0,2}|pon\p{L}{0,2}) (?:the |our |die |den |das |el |la )?(\p{L}[^,;:.]{2,60}?)(?<!\b(?:of|in|at|by|for|with|than|first|last|next|top|least|most)) (?:(?:to|auf|en) )?(?=\d[^,;\s]*(?: \p{L}+)?(?:\W*$|[,;] | (?:instead|now|jetzt)\b))/iu;
/** Questions, guesses, plans, quotes, refusals, additions, and what somebody is doing. */
const DOUBT = [
  /[?？]\W*$|吗|까[.?]?$|^\s*>/u,
  /^\W*(?:should|shall|would|could|can|may|did|does|do(?! not|n)|is|are|was|were|has|have|will|why|how|what|when|where|which|who|whether)\b/i,
  /^\W*(?:(?:and|but|so|now|then|first|good|great|ok(?:ay)?)[,:]? )*(?:it|this|that|they|these|those|there|let me|let's (?:check|see|look)|i(?:['’]ll|['’]m| will| need| can| see)|looking|checking)\b/i,
  /\b(?:if|unless|would|could|might|may|maybe|perhaps|probably|suppos\w+|assum\w+|consider\w*|options?|propos\w+|suggest\w*|recommend\w*|think|wonder\w*|some ?day|eventually|next (?:year|month|quarter)|wenn|falls|vielleicht|könnten?|würden?|sollten?|si|quizás?|podríamos)\b|如果|也许|可能|要不要|만약/iu,
  /\b(?:says?|said|according to|wrote|claims?|rather not|reject\w*|decided against|ruled out|also|too|as well|auch|también)\b|也|도 /iu,
  /(?:n['’]t|\bnot|\bno need to|\bagainst|\bwithout)\b(?: \w+){0,2} (?:replac|drop|remov|switch|mov|migrat|chang|rais|lower|bump|renam|get rid)\w*/i,
];
const QUOTED = /["“”„«»「」『』][^"“”„«»「」『』]*\s[^"“”„«»「」『』]*["“”„«»「」『』]/gu;
export const DONE = /\b(?:now|(?:replac|renam|mov|migrat|chang|switch|swapp|upgrad)ed)\b/i;
/** A request is an order, not a question. */
const POLITE =
  /^\W*(?:(?:please|ok(?:ay)?|yes|so|and)[, ]+)*(?:(?:can|could|would|will) you (?:please )?|please )(.*?)\??$/i;
const PLEASE = /[, ]+(?:please|pls|bitte|por favor)\W*$/i;
/** A plain word has to be the object of a verb, a name may follow a preposition. */
const USES_WORD =
  /^(?:us(?:e[sd]?|ing)|with|through|via|support\w*|needs?|requires?|wants?|ships?|on|nutzen|verwenden|mit|usamos|con|por)$/i;
const USES_NAME = /^(?:in|at|by|to|is|returns?|are|from|runs?|called|named|auf|über|ist|en|es)$/i;
const ARTICLE = /^(?:the|our|an?|version|port|den|die|das|el|la)$/i;
const COUPLED = /(?:,|\b(?:and|or|und|y))\s*$|^\s*(?:,\s*(?!(?:not|and) )[\p{L}\p{N}]|(?:and|or|und|y)\b|[+&])/iu;
const VALUE = new RegExp(
  `(?:(?<!\\p{L})(is|are|was|be|to|at|after|of|than|in|on|under|has|have|for|until|every|lasts?|takes?|holds?|allows?|auf|beträgt|ist|es|son|是|为|到)|[=:])(?= (?:(?:now|only|about|de|the|our|jetzt|ahora|port|version) )*([/~.#]{0,2}${NAME}))`,
  'giu',
);
const EQUALS = /^(?:is|are|was|be|beträgt|ist|es|son|是|为|[=:].*)$/i;
/** Verbs of what lasts; others say what somebody does. */
const LASTING =
  /[=:]|\b(?:is|are|was|be|set|chang\w+|rais\w+|lower\w*|bump\w*|increas\w+|decreas\w+|reduc\w+|mov\w+|updat\w+|upgrad\w+|downgrad\w+|switch\w*|listens?|runs?|lives?|expires?|starts?|begins?|keep|keeps|stor\w+|deploys?|points?|posts?|pin|lasts?|allows?|goes|has|have|holds?|takes?|retries|beträgt|ist|läuft|son|es)\b|[是为到]/i;

const stems = (list: string): ReadonlySet<string> =>
  new Set(
    list.split(' ').flatMap((word) => [word, `${word}d`, `${word}ed`, `${word}ing`].flatMap((each) => tokenize(each))),
  );
const LIGHT = stems(
  'use run pin last decide agree remember prefer now actually correction please let go set change raise lower bump increase decrease reduce update upgrade ' +
    'downgrade move switch migrate swap replace rename drop remove get got rid stop never more longer any anymore instead rather ' +
    'than only just still again currently from on off listen live start begin keep have must need want make take do don n ' +
    'doesn isn aren won s t re ve ll ok yes all always everywhere today yesterday last week month year call i support wir ' +
    'nutzen verwenden nehmen jetzt nun ab sofort läuft laufen beträgt ist sind der die das den dem für mit auf und nicht kein keine ' +
    'mehr statt zu von durch über unser ya no ahora usamos usar el la los las de del para por con es son en lugar vez salen sale',
);
/** A sentence may leave them out. */
const ATTRIBUTES = stems(
  'port timeout ttl limit threshold version size count interval budget deadline level mode branch name path url host region ' +
    'default owner format retention length minimum maximum rate retries replica color engine policy strategy schedule service ' +
    'server app file setting value flag variable environment tool command',
);
const CJK_LIGHT =
  /不再|使用|现在|改用|代替|取代|而不是|我们|弃用|改为|改成|[用了的在从是为]|더 이상|이제|사용\p{L}*|쓰지|쓴다|않\p{L}*|대신|(?<=[\p{L}\p{N}])(?:를|을|은|는|이|가|에서|에|로|으로)(?=\s|$|[.,])/gu;
const UNIT =
  /(\d) ?(ms|s|sec\w*|min\w*|h|hours?|days?|weeks?|months?|years?|[kmgt]i?b|percent|times|秒|分钟|小时|天)(?![a-z])/gi;
const WORD = /(?:--?)?[\p{L}\p{N}_@][\p{L}\p{M}\p{N}_@./:#+%-]*/gu;
const MARKED = /\d|\p{L}[._/@:-]\p{L}|\p{Ll}\p{Lu}|^--/u;

/** What the rules look for; benchmarks change one at a time. */
export const ENDING_RULES = {
  replacements: REPLACEMENTS,
  negation: NEGATION,
  /** A statement of this form is not ended. */
  negative: NEGATIVE,
  now: NOW,
  doubt: DOUBT,
  quoted: QUOTED,
  polite: POLITE,
  /** What is given up must be used by the statement, after such a word, and not beside others. */
  usesWord: USES_WORD,
  usesName: USES_NAME,
  coupled: COUPLED,
  lasting: LASTING,
  except: /\b(?:but|only|except|unless)\b/i,
  attributes: ATTRIBUTES,
  maxChars: MAX_CHARS,
};
export type EndingRules = typeof ENDING_RULES;

/** How a sentence ends others, or null. */
export function getEnding(statement: string, rules: EndingRules = ENDING_RULES): Ending | null {
  const text = getClaim(statement, rules);
  const matches = rules.replacements.map((form) => form.exec(text)).find((match) => match !== null);
  if (text !== '' && matches) {
    const { about = '' } = matches.groups ?? {};
    const [given = '', instead = ''] = matches.slice(matches.groups === undefined ? 1 : 2);
    const head = findClauseBefore(text.slice(0, matches.index));
    const tail = text.slice(matches.index + matches[0].length);
    const before = [...`${tail} | ${head}`.matchAll(FRESH)].map(([, used = '', last = '']) => used || last);
    const [old, fresh] = [getWords(given), [instead, ...before].flatMap(getWords)];
    const scope = getWords(`${head} ${about} ${findClauseAfter(tail)}`).filter((word) => !fresh.includes(word));
    const isVague = old.length === 0 || rules.except.test(tail);
    return isVague ? null : { shared: [...new Set([...old, ...scope])], old, fresh, assertion: null };
  }
  const negation = rules.negation.exec(text);
  if (negation !== null) {
    const [head, tail] = [text.slice(0, negation.index), text.slice(negation.index + negation[0].length)];
    const shared = getWords(`${findClauseBefore(head)} ${negation[0]} ${findClauseAfter(tail)}`);
    return shared.length === 0 ? null : { shared, old: shared.length === 1 ? shared : [], fresh: [], assertion: null };
  }
  const assertion = getAssertion(text, rules);
  if (assertion === null) return null;
  const { kind, subject, attributes, isNew } = assertion;
  const isSure = isNew || (kind === 'figure' && subject.length > 0 && attributes.length > 0);
  return isSure ? { shared: subject, old: [], fresh: [], assertion } : null;
}

export function endsStatement(
  { shared, old, fresh, assertion }: Ending,
  former: string,
  rules: EndingRules = ENDING_RULES,
): boolean {
  const claim = getClaim(former, rules);
  if (claim === '' || rules.negative.test(claim)) return false;
  const words = new Set(getWords(claim));
  if (!shared.every((word) => words.has(word))) return false;
  if (assertion !== null) return isOther(assertion, getAssertion(claim, rules));
  const isSaid = fresh.length > 0 && fresh.every((word) => words.has(word));
  return !isSaid && (old.length === 0 || isUsed(old, claim, fresh.length > 0, rules));
}

/** Whether a text says that something is used, by itself. */
function isUsed(old: readonly string[], former: string, isReplaced: boolean, rules: EndingRules): boolean {
  const { usesWord, usesName, coupled } = rules;
  if (getEnding(former, rules)?.old.includes(old[0] ?? '') === true) return false;
  if (hasPairedScript(former)) return true;
  for (const { 0: raw, index } of former.matchAll(WORD)) {
    const term = trimEnd(former.slice(index).split(' ', old.length).join(' '), ',.;');
    if (getUnits(raw)[0] !== old[0] || getWords(term).length < old.length) continue;
    const before = (former.slice(0, index).match(WORD) ?? []).filter((word) => !ARTICLE.test(word)).at(-1) ?? '';
    const isName = MARKED.test(raw) || /^\p{Lu}/u.test(raw) || isReplaced || old.length > 1;
    const isCoupled = coupled.test(former.slice(0, index)) || coupled.test(former.slice(index + term.length));
    return !isCoupled && (usesWord.test(before) || (isName && (usesName.test(before) || /[:=]$/.test(before))));
  }
  return false;
}

/** Whether the same attribute of the same thing had another value. */
function isOther(next: Assertion, old: Assertion | null): boolean {
  if (old === null || old.kind !== next.kind || old.value === next.value) return false;
  if (old.subject.length !== next.subject.length) return false;
  const [few, many] = [next.attributes, old.attributes].toSorted((a, b) => a.length - b.length) as [string[], string[]];
  if (!few.every((word) => many.includes(word))) return false;
  return few.length === many.length || (next.isNew && next.subject.length > 0);
}

function getAssertion(claim: string, { lasting, attributes: known, now }: EndingRules): Assertion | null {
  const ordered = claim.replace(/^(?:done|fixed|ok(?:ay)?|erledigt|hecho)[,:;] /i, '').replace(ORDER, '$1 is now ');
  const text = findClauseAfter(ordered.replace(/^[^:,]*\b(?:from now on|correction|as of [^:,]*)[,:]? /i, ''));
  const spaced = text.replace(UNIT, '$1$2').replace(/(?<!\d)[=:](?=\S)|[是为到](?=\s?[\dA-Za-z])/g, ' $& ');
  if (!lasting.test(spaced)) return null;
  const last = [...spaced.matchAll(VALUE)]
    .flatMap(([sign, by, value = '']) => {
      const kind = getKind(value, by ?? sign);
      return kind === null ? [] : [{ kind, value: trimEnd(value, './:').toLowerCase() }];
    })
    .at(-1);
  if (last === undefined) return null;
  const own = getWords(last.value);
  const rest = getWords(spaced).filter((word) => !own.includes(word));
  const attributes = rest.filter((word) => known.has(word));
  const tail = spaced.slice(spaced.toLowerCase().lastIndexOf(last.value) + last.value.length);
  if (last.kind === 'word' && (attributes.length === 0 || getWords(tail).length > 0)) return null;
  return { ...last, subject: rest.filter((word) => !known.has(word)), attributes, isNew: now.test(ordered) };
}

function getKind(value: string, by: string): Assertion['kind'] | null {
  const isEqual = EQUALS.test(by);
  if (/^v?\d/.test(value)) return /^(?:in|under)$/i.test(by) ? null : 'figure';
  if (value.includes('/')) return isEqual || /^(?:in|to|at|under)$/i.test(by) ? 'path' : null;
  if (!isEqual && !/^to$/i.test(by)) return null;
  return MARKED.test(value) || /^[#\p{Lu}]/u.test(value) ? 'name' : 'word';
}

/** A number of a list is no value. */
const LIST = /: 1[.)](?: |$)/;

/** The sentence as a claim; '' if it is none. */
function getClaim(statement: string, { maxChars, quoted, polite, doubt }: EndingRules): string {
  if (statement.length > maxChars || LIST.test(statement)) return '';
  const bare = statement.replace(quoted, ' ').replaceAll('`', '').replace(/\s+/g, ' ').trim();
  const text = (polite.exec(bare)?.[1] ?? bare).replace(PLEASE, '');
  return doubt.some((sign) => sign.test(text)) ? '' : text;
}

/** Stems, names and figures, without words that say nothing of the subject. */
function getWords(text: string): string[] {
  const raw = text.replace(CJK_LIGHT, ' ').replace(UNIT, '$1$2').match(WORD) ?? [];
  return [...new Set(raw.flatMap(getUnits))].filter((unit) => !LIGHT.has(unit));
}

function getUnits(raw: string): readonly string[] {
  const bare = trimEnd(raw, './:()-');
  return MARKED.test(bare) ? [bare.toLowerCase()] : tokenize(bare);
}

/** Leaves out earlier clauses that do not limit the last one. */
function findClauseBefore(text: string): string {
  const clauses = text.split(/[,;!]\s|[.]\s/).filter((clause) => /[\p{L}\p{N}]/u.test(clause));
  return clauses.slice(0, -1).some((each) => /\b(?:in|on|for|at|when|during|bei|für|para)\b/i.test(each))
    ? text
    : (clauses.at(-1) ?? '');
}

function findClauseAfter(text: string): string {
  const end = /[,;!]\s|[，；。]|[.](?:\s|$)|\s[—–(]|\s(?:because|since|so that|due to|weil|porque)\s/;
  return text.split(end, 1)[0] ?? '';
}
