import { trimEnd } from '../../common/text.ts';
import { STOP_WORDS, tokenize, uniqueTokens } from './tokenizer.ts';

const LETTERS = /\p{L}+/gu;
const ANCHORS = 4;
const TAGS = 5;

/** Too common to identify a topic. */
const COMMON = new Set(
  (
    'says said user use used using make made get set add added done need want also just like please work working works ' +
    'let lets now here there thing things something file files code new one two first next last all any some more most ' +
    'must never always prefer decided because instead only still well good right sure think know see look run running ' +
    'fix fixed change changed update updated create created check checked test tests pass passes fail failed yes okay ' +
    'don doesn isn can could would every each other same own its too very without within after before when while ' +
    'take takes taken go goes went gone come comes give gives put show shows look looks start starts time times way ' +
    'many much often long almost about really already once again today'
  ).split(' '),
);

const COMMON_TOKENS = new Set([...COMMON].flatMap((word) => tokenize(word)));

export function topicTokens(text: string): string[] {
  const foreign = findForeign(text);
  return uniqueTokens(text).filter((token) => !COMMON_TOKENS.has(token) && foreign?.tokens.has(token) !== true);
}

const AREAS: readonly (readonly [string, RegExp])[] = [
  ['database', /\b(?:database|postgres\w*|mysql|sqlite|sql|migrat\w+|schema|table|redis|mongo\w*)\b/i],
  ['authentication', /\b(?:auth(?!or)\w*|login|oauth|jwt|token|session cookie|password|sso)\b/i],
  ['testing', /\b(?:tests?|vitest|jest|pytest|coverage|fixture|mock|e2e)\b/i],
  ['deployment', /\b(?:deploy\w*|release|staging|production|kubernetes|k8s|docker\w*|helm|terraform|rollback)\b/i],
  ['ci', /\b(?:ci|pipeline|github actions|workflow|jenkins)\b/i],
  ['configuration', /\b(?:config\w*|settings?|env(?:ironment)? variables?|\.env|ports?|feature flags?)\b/i],
  ['api', /\b(?:api|endpoints?|routes?|graphql|rest|grpc|webhooks?|http)\b/i],
  ['frontend', /\b(?:react|vue|svelte|css|components?|layout|buttons?|ui|browser)\b/i],
  ['performance', /\b(?:performance|latency|slow|cache|caching|memory leak|throughput|p9\d|benchmark)\b/i],
  ['security', /\b(?:security|vulnerab\w+|cve|encrypt\w*|tls|certificates?|xss|injection)\b/i],
  ['bug', /\b(?:bug|error|exception|crash\w*|stack trace|regression|flaky|broken)\b/i],
  ['documentation', /\b(?:readme|docs?|documentation|changelog)\b/i],
  ['build', /\b(?:build|bundl\w+|compil\w+|webpack|vite|tsc|lint\w*|eslint|biome)\b/i],
  ['dependencies', /\b(?:dependenc\w+|package\.json|upgrade|lockfile|npm|pnpm|yarn|pip|cargo)\b/i],
];

/** Up to four identifying words as written, names and figures first. */
export function getAnchors(text: string): string[] {
  const keywords = new Map<string, { word: string; score: number; at: number }>();
  const words = text.match(/[\p{L}\p{N}_@][\p{L}\p{N}_@./:-]*/gu) ?? [];
  const foreign = findForeign(text);
  for (const [at, raw] of words.slice(0, 2_000).entries()) {
    const word = trimEnd(raw, './:@-');
    const lower = word.toLowerCase();
    if (word.length < 2 || word.length > 60 || STOP_WORDS.has(lower) || COMMON.has(lower)) continue;
    if (foreign?.words.has(lower) || tokenize(word).length === 0) continue;
    const entry = keywords.get(lower) ?? { word, score: 0, at };
    keywords.set(lower, { ...entry, score: entry.score + strength(word) });
  }
  const ranked = [...keywords.values()].sort((a, b) => b.score - a.score || a.at - b.at).slice(0, ANCHORS);
  return ranked.sort((a, b) => a.at - b.at).map((entry) => entry.word);
}

function strength(word: string): number {
  if (/^\P{L}*\p{L}.*[./_]|[a-z][A-Z]|^[A-Z0-9_]{3,}$/u.test(word)) return 3;
  if (/\d/.test(word)) return 1.5;
  return word.length < 4 ? 0.5 : 1;
}

export function getAreas(text: string): string[] {
  return AREAS.filter(([, pattern]) => pattern.test(text)).map(([area]) => area);
}

/** Known tags that occur in the text, then areas of work; at least one if the text has words. */
export function getTags(query: string, kept: string, knownTags: readonly string[]): string[] {
  const text = `${query.slice(0, 4_000)}\n${kept}`;
  const tokens = new Set(tokenize(text));
  const matches = knownTags.filter((tag) => {
    const words = uniqueTokens(tag.replaceAll('-', ' '));
    return words.length > 0 && words.every((word) => tokens.has(word));
  });
  const tags = [...new Set([...matches, ...getAreas(text)])].slice(0, TAGS);
  if (tags.length > 0) return tags;
  const word = getAnchors(text).find((each) => /^[\p{L}\p{N}-]{3,30}$/u.test(each));
  return word === undefined ? [] : [word.toLowerCase()];
}

export function contentTokens(text: string): string[] {
  const foreign = findForeign(text);
  return uniqueTokens(text).filter((token) => !TALK.has(token) && foreign?.tokens.has(token) !== true);
}

/** Words of asking and agreeing, without content. */
const TALK = new Set(
  (
    'yes yep yeah no nope ok okay sure right fine good great perfect nice thanks thank please pls sorry hi hello hey ' +
    'go ahead do did done does again just also too now still here there let lets want need like get got give make made ' +
    'tell told say said show remind remember recall know think try continue proceed keep next previous last first other ' +
    'another one ones same thing stuff way bit some any all both either each more most much many very really actually ' +
    'exactly maybe use used using am may might must shall us me mine yours ours its whose after before while since up ' +
    'down out over back off only once ever never always whom per'
  )
    .split(' ')
    .flatMap((word) => uniqueTokens(word)),
);

/** Words without content of German, Spanish and French. Many mean something in English, such as "die" or "son". */
const FOREIGN_WORDS = [
  'der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine keinen ist sind war waren ' +
    'wird werden wurde wurden hat habe haben hatte hatten kann können konnte soll sollen sollte muss müssen darf dürfen ' +
    'will wollen ich du er sie es wir ihr mich mir dich dir sich uns euch ihn ihm ihnen mein dein sein unser unsere ' +
    'unseren ihre ihren dieser diese dieses diesen wie was wer wen wem wo wann warum wieso welche welcher welches ' +
    'welchen welchem wohin woher womit wofür wozu hier da dort dann denn dass ob wenn weil als auch noch schon nur sehr ' +
    'mal doch so zu zum zur in im ins an am auf aus bei beim bis durch für gegen mit nach ohne über um unter von vom ' +
    'vor zwischen seit ab gibt gab geht ging macht machen gemacht nehmen nimmt genommen sagen bitte danke ja nein viel ' +
    'viele vielen hoch lang lange oft groß alle alles',
  'el la los las un una unos unas y o u e pero no ni es son era eran fue fueron ser está están estaba hay ha han he ' +
    'hemos había tiene tienen tenía tengo tenemos puede pueden puedo debe deben yo tú él ella ellos nosotros me te se nos ' +
    'le les lo su sus mi mis tu tus nuestro nuestra este esta esto estos estas ese esa eso que qué quién quien cuál ' +
    'cuáles cómo como cuándo cuando cuánto cuánta cuántos cuántas dónde donde por para porque con sin de del al a en ' +
    'desde hasta entre sobre según si ya muy más menos también solo así entonces hace hacer usamos usar llama sí gracias ' +
    'favor todo toda todos todas',
  'le la les l un une des du de d et ou mais ne n pas non est sont était étaient être a ont avait avons avez ai été ' +
    'peut peuvent doit doivent je j tu il elle on nous vous ils elles me m te t se s lui leur y en ce c cet cette ces ' +
    'mon ma mes ton ta tes son sa ses notre nos votre vos que qu qui quoi quel quelle quels quelles comment pourquoi ' +
    'quand où combien dont à au aux dans par pour sur sous avec sans chez entre vers depuis si plus moins très aussi ' +
    'tout toute tous toutes fait faire faut va ici là oui merci',
];
const FOREIGN = FOREIGN_WORDS.map((list) => ({ words: new Set(list.split(' ')), tokens: new Set(uniqueTokens(list)) }));
/** Enough to tell the language. */
const READ_CHARS = 300;

/** Its nouns have capitals as names have. */
export const isGerman = (text: string): boolean => findForeign(text) === FOREIGN[0];

/** The language that has more words without content of a text than English has; null for English. */
function findForeign(text: string): (typeof FOREIGN)[number] | null {
  const words = new Set(text.slice(0, READ_CHARS).toLowerCase().match(LETTERS));
  const count = (of: ReadonlySet<string>): number => [...words].filter((word) => of.has(word)).length;
  // One word alone may be English.
  let [found, most] = [null as (typeof FOREIGN)[number] | null, Math.max(1, count(STOP_WORDS))];
  for (const language of FOREIGN) {
    const known = count(language.words);
    if (known > most) [found, most] = [language, known];
  }
  return found;
}
