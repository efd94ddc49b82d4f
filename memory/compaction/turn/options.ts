import { clip, trimEnd } from '../../../common/text.ts';
import { contentTokens } from '../../text/keywords.ts';
import type { Statement } from '../../text/statements.ts';
import { ADVISES, CONCLUDES } from './answer.ts';

/** After what names an option: nothing, or words that say what is done with it; any other word is what the figure counts. */
const AFTER = String.raw`(?=[\s.!)]*$|\s?[,;:!]|\.\s|\s[-–—]|\s(?:and|or|und|oder|y|o|but|aber|pero|mais|with|mit|please|pls|bitte|for now|first|later|too|also|out|works|is fine|yes|no|not|erstmal?|zuerst|später|weg|raus|auch|nicht|reicht|passt|primero|por ahora|también)(?![\p{L}\p{N}])|[번号])`;
const OPTION = String.raw`#?(\d{1,2}(?!(?![번号])[\p{L}\d%]|[.:]\d)|[a-h]${AFTER})`;
const OPTIONS = `${OPTION}${String.raw`(?:[.)]?\s?(?:,|and|&|\+|und|y)\s?${OPTION})?`.repeat(2)}`;
const NUMBERED = new RegExp(
  String.raw`^(?:(?:yes|yeah|ok(?:ay)?|please|do|go with|let'?s (?:do|go with|try)|implement|take|use|fix|i(?:'d)? (?:like|prefer|go with|take)|ja|nimm|mach|sí|vale|usa|mejor|oui|prends)[\s,]+|(?:好的?|可以|就|用|选|네|응|좋아요)[\s,，]*){0,4}${OPTIONS}`,
  'iu',
);
/** Options that a reply names where it does not begin with them, taken or left out. */
const NAMED = new RegExp(
  String.raw`(?:^(?:(?:yes|yeah|ok(?:ay)?|please|let'?s|ja|sí|oui)[\s,]+){0,3}[\p{L}'-]{2,12}|(?<!\p{L})(?:skip|not|no|except(?: for)?|but|without|drop|ignore|omit|minus|out|only|just|ohne|außer|nicht|nur|lass|kein|sin|menos|salvo|excepto|solo|sans|sauf|pas))\s(?:(?:the|die|der|das|la|el|le|l[oae]s|number)\s)?${OPTIONS}${AFTER}|(?:除了?|不要|跳过|别做)\s?(\d{1,2})|(\d{1,2}|[a-h])(?=[번号])`,
  'giu',
);
/** By their place among the options: `the second one`; without an article it says when, not which. */
const ORDINALS = [
  ['first|erste[nrs]?|primer[ao]?|premi(?:er|ère)', '第一|첫 ?번째'],
  ['second|zweite[nrs]?|segund[ao]|deuxième|seconde?', '第二|두 ?번째'],
  ['third|dritte[nrs]?|tercer[ao]?|troisième', '第三|세 ?번째'],
  ['last|letzte[nrs]?|últim[ao]|derni(?:er|ère)', '最后一|마지막'],
].map(([spaced, unspaced]) => {
  const named = `(?:the|die|der|das|den|el|l[ae]) (?:${spaced})(?: (?:one|option|variante?))?${AFTER}`;
  return new RegExp(`${named}|(?:${unspaced})[个種种]?`, 'iu');
});
const OPTION_WORD =
  /(?:options?|approach|alternative|s[cz]enario|escenario|plan|variante?|number|nr\.?|opción|方案|选项|옵션)\s?(?=#?(?:\d|[a-h](?!\p{L})))/giu;
const FIGURE = /(?<![\p{L}\p{N}.])\d(?![\p{L}\p{N}%]|[.:]\d)/gu;
/** After a choice; other words say something about the option, and may reject it. */
const CHOSEN_SO =
  /^[번号]?[\s.!)]*(?:$|[,;:–—-]|(?:and|und|y|but|aber|pero|mais|with|mit|please|bitte|works|is fine|reicht|passt)(?!\p{L}))/iu;
/** Names an option: `B) …`, `2. …`, `Option 2 – …`, `Phase 2: …`. */
const LABEL = /^(?:(\p{L}{2,12})\s?(\d{1,2}|[A-H])(?=\s?[:.()–—-]|\s*$)|([A-H]|\d{1,2})[).:]\s)[\s:.–—-]*/u;
export const OF_OPTION =
  /^(?:option|approach|alternative|s[cz]enario|escenario|plan|variante?|opción|方案|选项|옵션)\s?(?:\d{1,2}|[A-H])\s?(?:[:.)–—-]|$)/iu;
/** Options in one sentence: `a) …, b) …`. */
const INLINE = /(?:^|\s)\(?([a-h1-9])\)\s/i;
const NAMES_OPTION = /\b(?:option|approach|alternative) (\d|[A-H])\b(?!\s?[(:–—-])/i;

/** One of several ways, which the answer need not take; a conclusion below the last of their headings is none. */
export function isOption({ text, heading }: Statement): boolean {
  if (OF_OPTION.test(text)) return true;
  return OF_OPTION.test(heading) && !CONCLUDES.test(text) && !NAMES_OPTION.test(text);
}

/** With the name of an option where only its label stands: `I'd take option 2 (“one table”)`. */
export function withOptions(concluded: readonly Statement[], said: readonly Statement[]): string[] {
  const texts = concluded.map(({ text }) => text);
  const { options } = findOptions(said);
  // Other sentences may mean options of somebody else.
  return texts.map((text) => (ADVISES.test(text) || CONCLUDES.test(text) ? nameOption(text, options, texts) : text));
}

export function nameOption(text: string, options: ReadonlyMap<string, string>, told: readonly string[]): string {
  return text.replace(NAMES_OPTION, (label, id: string) => {
    const name = getName(options.get(id.toUpperCase()) ?? '');
    return told.some((each) => each.includes(trimEnd(name, '…'))) ? label : `${label} (“${name}”)`;
  });
}

/** A list item with words of its own, pasted or typed: not a choice, unless it repeats the option. */
function isOther(reply: string, picked: readonly string[]): boolean {
  if (!/^\d{1,2}[.)]\s(?:\S+\s+){3}/.test(reply)) return false;
  const offered = new Set(contentTokens(picked.join(' ')));
  const own = contentTokens(reply);
  return own.filter((token) => offered.has(token)).length < own.length / 2;
}

/** The options that a reply takes, none where it names one that was not offered; `isChosen`: it begins with them. */
export function pickOptions(reply: string, options: ReadonlyMap<string, string>, words: ReadonlySet<string>) {
  const numbered = withFigures(reply, [...options.keys()], words);
  const [match = '', ...chosen] = NUMBERED.exec(numbered) ?? [];
  const rest = numbered.slice(match.length);
  const isChosen = match !== '' && CHOSEN_SO.test(rest);
  // A comment on one option may choose another one.
  const named = [...rest.matchAll(NAMED)].flatMap(([, ...each]) => each);
  const getLabels = (each: string[]) => each.flatMap((label = '') => label.toUpperCase().match(/\S+/) ?? []);
  const figures = isChosen || match === '' ? getLabels(named) : (reply.match(FIGURE) ?? []);
  const further = figures.filter((label) => options.has(label));
  const labels = [...new Set([...getLabels(chosen), ...further])];
  const texts = labels.flatMap((label) => options.get(label) ?? []);
  const picked = texts.length === labels.length && !isOther(reply, texts) ? texts : [];
  return { labels, picked, isChosen, isSeveral: further.length > 0 };
}

/** With the label in place of the words for it: `the second one`, `option 2`, `phase 2`. */
function withFigures(reply: string, labels: readonly string[], words: ReadonlySet<string>): string {
  const getLabel = (at: number): string => labels.at(at === ORDINALS.length - 1 ? -1 : at) ?? '';
  const placed = ORDINALS.reduce((text, each, at) => text.replace(each, `${getLabel(at)}号`), reply.toLowerCase());
  const bare = placed.replace(OPTION_WORD, '').replace(/\b([a-h])\. /g, '$1, ');
  return [...words].reduce((text, word) => text.replaceAll(`${word} `, ''), bare);
}

/** What the assistant numbered, and the words for it, such as "phase"; the last list wins. */
export function findOptions(statements: readonly Statement[]) {
  const options = new Map<string, string>();
  const words = new Set<string>();
  const put = (number: number | null, text: string, title = text): void => {
    const [own = '', word, named, letter] = LABEL.exec(title) ?? [];
    choose(number === null ? (named ?? letter) : `${number}`, text);
    if (number === null && word !== undefined && !OF_OPTION.test(own)) words.add(word.toLowerCase());
  };
  const choose = (label: string | undefined, text: string): void => {
    if (label === '1' || label === 'A') for (const each of [options, words]) each.clear();
    if (label !== undefined) options.set(label, trimEnd(text, ':'));
  };
  for (const [at, { items, number, text, heading, lead }] of statements.entries()) {
    for (const item of items) put(item.number, item.text);
    // Of an item of several sentences, the first names it.
    const before = statements[at - 1];
    if (items.length === 0 && (number ?? '') !== before?.number)
      put(number, number === null ? text.slice(lead.length) : text);
    if (heading !== before?.heading) put(null, `${heading}: ${text}`, heading);
    const [, ...inline] = text.split(INLINE);
    for (let part = 0; inline.length > 2 && part < inline.length; part += 2)
      choose(inline[part]?.toUpperCase(), trimEnd(inline[part + 1] ?? '', ' ,;?').replace(/, (?:or|oder)$/, ''));
  }
  return { options, words };
}

export function getName(option: string): string {
  const whole = option.replace(LABEL, '');
  const [name = ''] = whole.split(/\s[-–—]\s|[:(]/);
  return clip((name.split('"').length % 2 === 0 ? whole : name).trim(), 40);
}
