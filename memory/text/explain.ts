import { isAsking, isQuestion } from './sentences.ts';

/** Of a shorter one little can be learned; a longer one is an argument. */
const LEAST_CHARS = 30;
const MOST_CHARS = 220;
const MOST_SUBJECT_WORDS = 8;
const LEAST_WORDS = 6;
const LEAST_MEANING_WORDS = 3;

/** What stands for a code span while words are counted. */
const SPAN = '`';
const SPANS = /`[^`]{1,120}`/g;
/** A code span, a path, a call, a flag, or an identifier. */
const NAME = /`|\p{L}[._/]\p{L}|\p{Ll}\p{Lu}|\p{L}\(\)|(?:^|\s)--?\p{L}/u;
/** A person quotes what the assistant sets as code. */
const QUOTED = /"[^"]{2,60}"/;

/** `name`, what it is; the dash or colon between them is what lists use. */
const DEFINITION = /^`([^`]{2,60})`(?: \([^()]{2,30}\))?(?: [-–—]|:) (.+)$/;
const TEST_NAME = /^Test\p{Lu}|^test_|_test\b|\.test\.|\.spec\.|\.jsonl?$/u;
/** A revision, a place in a file, or an assignment. */
const PLACE = /^[0-9a-f]{7,40}$|:\d|=/;
const FILE = /\.\p{L}{1,5}$/u;
const CODE_NAME = /\/|\(\)$/;
/** Of a folder or a function, such a beginning tells what was done there. */
const ORDERS =
  /^(?:add|adjust|allow|avoid|build|copy|install|load|open|put|read|send|start|stop|take|consider|ensure|note|prefer|run|see|try|verify|check|keep|archive|call|change|clean|consolidate|convert|create|delete|display|drop|ensure|extend|extract|fix|handle|implement|improve|include|integrate|introduce|list|make|merge|move|pass|populate|refactor|remove|rename|replace|return|set|show|simplify|skip|store|support|switch|track|update|use|wire|write)\b/i;
const VERDICT =
  /^(?:\p{L}+ed\b|various\b|not?\b|none\b|now\b|new\b|n\/a\b|yes\b|ok\b|value\b|evidence\b|mentioned|confirmed|success|all\b|pass|done|fail|only\b|too\b|same\b|verif|tests?\b|basic\b|`)/iu;

/** Tells what was done, as a noun. */
const CHANGE =
  /\b(?:change|deletion|removal|addition|rename|renaming|refactor(?:ing)?|clean-?up|migration|fix|update|rewrite) (?:in|of|for|to)\b|\b(?:change|deletion|removal|addition|rename|fix|update)s?$|\b(?:test cases?|tests)\b/i;

/** What something does whenever it runs. */
const VERBS = new Set(
  (
    'accepts allows blocks calls checks compares concatenates contains counts creates defaults deletes disables enables ' +
    'excludes exits expects expires falls follows goes handles has holds ignores includes inherits keeps lists listens ' +
    'lives loads maps matches means merges moves needs overrides owns points prefers preserves prevents ' +
    'publishes reads receives refers rejects removes replaces represents requires resolves returns runs searches sends ' +
    'serves sets skips starts stays stops stores supports takes tracks triggers updates uses waits works wraps writes ' +
    'is cannot must lets'
  ).split(' '),
);
const PLURAL_VERBS = new Set(
  'are have use run live store keep read write need contain point take must cannot'.split(' '),
);
const ADVERBS = new Set('only never always automatically also then now'.split(' '));
const NEGATED = /^(?:does|do|is|are|ca)n't$/i;
/** A column or a page is there to show something; of others, it tells what was seen once. */
const SHOWN = /(?:column|page|list|view|header|menu|table|tab|footer|prompt|banner)$/i;
/** The subject ends before these, so that what follows is no verb of it. */
const BREAKS = new Set(
  'which that to who whose when while if because but so since where until unless than then as and or - – — =>'.split(
    ' ',
  ),
);
/** Stands for something said before. */
const POINTS_BACK =
  /^(?:it|its|this|that|these|those|there|they|he|she|we|you|i|here|what|which|so|but|and|or|each|both|one|another|other|some|most|many|only|nothing|everything|same|new|old|now|yes|no|not|either|right|my|your|their|his|her|current|if|when|how|why|is|are|do|does|don't|can|let|let's|also|just|then|next|first|second|third)$/i;
const VAGUE =
  /^(?:(?:root )?cause|fix(?:es)?|issues?|problems?|bugs?|changes?|tests?|code|approach|solution|implementation|logic|error|errors|key|catch|rest|following|trade-?offs?|message|warning|script|output|idea|point|reason|results?|reviewer|comment|feedback|failures?|case|question|answer|files?|only|main|value|difference|design|last|existing|original|previous|other|steps?|thing|description|assertion|flow|cleanup|plan|pr|work|summary|condition|check|lines?|behaviou?r|data|version|part|user|assistant|option|report|example|list|count|numbers?|percentage|diff|commit|branch|transcript|logs?|method|function|command|scenario)s?$/i;
const PREPOSITION = /^(?:of|in|on|for|with|at|from|by|under|inside|within|between)$/;

/** Of several, one that only its list tells. */
const ONE_OF =
  /^(?:the|an?) (?:current|existing|new|old|same|other|first|second|last|next|above|updated|actual|whole)\b/i;

/** An account, a finding of one day, advice, or a reference to what stands elsewhere. */
const PASSING =
  /\b(?:was|were|had|did|been|being|i|i'(?:m|ve|ll|d)|me|you|your|we|we're|our|us|let's|would|could|might|may|should|in theory|will|imports?|won't|probably|perhaps|maybe|likely|seems?|appears?|currently|already|still|yet|just|actually|basically|really|(?:is|are|n't|not) set\b|(?:option|approach|phase|step|case|scenario|problem|session|turn|agent|user) (?:[a-z]|\d{1,4})\b(?! \w)|this|these|those|above|below|earlier|previous(?:ly)?|missing|wrong|broken|bug|issue|failing|failed|unused|redundant|todo|cleaner|better|best|recommend(?:s|ed|ation)?|today|lines? \d{1,6}|all tests|tests? (?:pass|cover)(?:s|es|ed)?|no changes?|problem|overall|correct(?:ly)?|accurate(?:ly)?|properly|instead|unknown command|doesn't exist|not (?:found|among)|passing|for example|e\.g|etc|real value|good point|the key|edge case|trivial|stale|clean(?:er|ly)?|nice|great|pattern|hardcoded|two things|is about|my|either|actual|looks? like|any ?more|that (?:file|branch|session|line|one|case|function|test|commit|repo|part)|test cases?|no longer (?:used|needed)|unit tests?|affected|has no|is empty|is safe|the (?:constant|function|helper|method|variable|value|field|interface|class|type|file|call|one)$|comprehensive|added|updated|changed|renamed|moved|fixed|replaced|as (?:seen|shown|expected|you)|thanks to|because)\b|\.\w{1,5}:\d|;|:$|[{}<>|→✓✅❌…“”]/iu;
const DATED = /\b(?=[a-f]*\d)[0-9a-f]{7,}\b|\b\d{4}-\d\d-\d\d\b/i;

/** Tells of work that was done: what such an answer lists are its changes. */
const REPORT =
  /^(?:(?:i(?:'ve| have)?|also|all|the \p{L}{1,30}|done|now)[,.:]? ?(?:\p{L}{1,30} )?)?(?:added|updated|removed|created|changed|fixed|implemented|moved|renamed|refactored|deleted|replaced|wrote|modified)\b|\b(?:tests?|build|lint(?:er|ing)?) (?:now |all )?(?:pass|succeed)|\b(?:changes made|key changes|summary of changes|what (?:was|i) (?:added|changed)|files? (?:changed|modified|created|added))\b/iu;

export function reportsWork(text: string): boolean {
  return REPORT.test(text);
}

export function isDefinition(text: string): boolean {
  return DEFINITION.test(text);
}

/** Whether a text tells how something works, by name, and can be understood without what stands around it. */
export function describesBehavior(text: string): boolean {
  if (text.length < LEAST_CHARS || text.length > MOST_CHARS || isQuestion(text) || !isBalanced(text)) return false;
  const [, name, meaning] = DEFINITION.exec(text) ?? [];
  const bare = text.replace(SPANS, SPAN).replace(/ (do|does|is|are) not /g, " $1n't ");
  if (PASSING.test(bare) || DATED.test(text)) return false;
  return name === undefined || meaning === undefined ? isHabit(bare) : isMeaning(name, meaning);
}

function isMeaning(name: string, meaning: string): boolean {
  if (TEST_NAME.test(name) || PLACE.test(name) || FILE.test(name) || VERDICT.test(meaning)) return false;
  if ((CODE_NAME.test(name) && ORDERS.test(meaning)) || CHANGE.test(meaning)) return false;
  return meaning.split(' ').length >= LEAST_MEANING_WORDS;
}

/** Subject, then what it does. */
function isHabit(bare: string): boolean {
  if (!NAME.test(bare)) return false;
  const text = withoutCondition(bare);
  if (ONE_OF.test(text) || ORDERS.test(text) || text.startsWith('"')) return false;
  const words = text.split(' ').filter((word) => !ADVERBS.has(word));
  if (words.length < LEAST_WORDS) return false;
  const verbAt = words.findIndex((word, at) => at > 0 && isVerb(word, words[at - 1] ?? ''));
  if (verbAt < 1 || verbAt > MOST_SUBJECT_WORDS) return false;
  const subject = words.slice(0, verbAt);
  if (subject.some((word) => BREAKS.has(word.toLowerCase().replace('(', '')) || /[,:.!]$/.test(word))) return false;
  return isNamed(subject);
}

function isVerb(word: string, before: string): boolean {
  if (word === 'shows') return SHOWN.test(before);
  return VERBS.has(word) || NEGATED.test(word) || (PLURAL_VERBS.has(word) && /s[`)"]?$/.test(before));
}

function isNamed(subject: readonly string[]): boolean {
  const [first = ''] = subject;
  if (POINTS_BACK.test(first) || /^\p{L}+(?:ed|ing)$/u.test(first)) return false;
  if (subject.includes('like')) return false;
  if (subject.some((word) => NAME.test(word))) return true;
  if (subject.length < 3 && /^(?:the|an?|all|each|every|both)$/i.test(first)) return false;
  const end = subject.findIndex((word) => PREPOSITION.test(word));
  const head = subject.slice(0, end < 0 ? undefined : end).at(-1) ?? '';
  return !VAGUE.test(head) && !/^(?:the|an?)$/i.test(head);
}

/** "For auto-commit, …": the subject comes after it. */
function withoutCondition(text: string): string {
  return text.replace(/^(?:for|with|in|on|without|when|if) [^,.]{3,60}, /i, '');
}

function isBalanced(text: string): boolean {
  const count = (mark: string): number => text.split(mark).length - 1;
  return count('`') % 2 === 0 && count('"') % 2 === 0 && count('(') === count(')');
}

/** Settles how the product is built, or says why it is so. */
const SETTLES =
  /\b(?:let's (?:(?:also|only|just|then|completely|always|still|rather) ){0,2}(?:use|keep|rename|call|name|set|make|drop|remove|switch|stick|store|show|hide|limit|default|support|require|treat|disable|enable|allow|replace|move)\b|we (?:(?:should|always|only|never|explicitly|just|then|deliberately|intentionally) ){0,2}(?:use|show|keep|store|write|read|ask|look at|call|name|support|deploy|publish|require|removed|dropped|want)|that's why we(?= \p{L})|on purpose|we should do)\b/iu;
const OF_NOW =
  /\b(?:for now|right now|again|currently|today|yesterday|i'm|i am|i (?:get|see|did|have|know|want|think|feel|wonder)|(?:do|implement|add|remove|try|keep|use|change|move|make|revert|fix|update) (?:this|that|it|these|those|them)|option \w|this|you|wondering|maybe|how)\b|…/iu;
const LEAD = /^(?:(?:ok(?:ay)?|yes|yeah|no|so|and|but|also|then|thinking again)[,:]? ){1,3}/i;

/** What a user settles by name, without the words that lead it in; '' for any other text. */
export function settledBy(text: string): string {
  const bare = text.replace(LEAD, '');
  if (
    bare.length < LEAST_CHARS ||
    bare.length > MOST_CHARS ||
    isAsking(bare) ||
    !isBalanced(bare) ||
    bare.startsWith('(')
  )
    return '';
  return SETTLES.test(bare) && (NAME.test(bare) || QUOTED.test(bare)) && !OF_NOW.test(bare) ? bare : '';
}
