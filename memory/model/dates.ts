/** Longer texts are no statements. */
const MOST_CHARS = 10_000;

/** Sunday first, as in `Date`. */
const WEEKDAYS: readonly string[] = [
  'sunday|sonntag|domingo|(?:周|星期|礼拜)[日天]|일요일',
  'monday|montag|lunes|(?:周|星期|礼拜)一|월요일',
  'tuesday|dienstag|martes|(?:周|星期|礼拜)二|화요일',
  'wednesday|mittwoch|miércoles|(?:周|星期|礼拜)三|수요일',
  'thursday|donnerstag|jueves|(?:周|星期|礼拜)四|목요일',
  'friday|freitag|viernes|(?:周|星期|礼拜)五|금요일',
  'saturday|samstag|sonnabend|sábado|(?:周|星期|礼拜)六|토요일',
];
const WEEKDAY = WEEKDAYS.map((names) => `(${names})`).join('|');
const NEXT = 'next|nächste[nrs]?|kommende[nrs]?|(?:el |la )?próxim[oa]|下个?|다음 ?주';
const LAST = 'last|letzte[nrs]?|(?:el )?pasado|上个?|지난 ?주?';
const COUNTS = [
  ...['', 'a an one einem einer un una 一', 'two zwei dos 两 二', 'three drei tres 三', 'four vier cuatro 四'],
  ...['five fünf cinco', 'six sechs seis', 'seven sieben siete', 'eight acht ocho', 'nine neun nueve', 'ten zehn diez'],
].map((words) => words.split(' '));
const NUMBER = `\\d{1,3}|${COUNTS.flat()
  .filter((word) => word !== '')
  .toSorted((one, other) => other.length - one.length)
  .join('|')}`;

/** Says that what follows is to come: `on Monday` alone may be over. */
const AHEAD =
  "(?<=(?:will|must|should|remind me|has to|have to|needs? to|going to|'ll|wird|werden|muss|soll|hay que|tiene que|va a)(?![\\p{L}])[^.!?]{0,80})";

/** Says that what follows is over: `on Monday` alone may be to come. */
const BEHIND = '(?<=(?:did|was|were|had|haben|hatten?|waren?|wurden?|qué|fue)(?![\\p{L}])[^.!?]{0,80})';

interface Day {
  readonly year: number;
  readonly month: number;
  readonly date: number;
}

type Groups = readonly (string | undefined)[];

interface Rule {
  /** Matches wherever `sign` does. V8 discards its compiled code when idle, and compiles it in a tenth of the time. */
  readonly hint?: RegExp;
  readonly sign: RegExp;
  readonly getDate: (match: Groups, today: Day) => Day;
}

const word = (source: string): Pick<Rule, 'hint' | 'sign'> => ({
  hint: new RegExp(source.replaceAll(AHEAD, '').replaceAll(BEHIND, ''), 'iu'),
  sign: new RegExp(`(?<![\\p{L}\\p{N}_])(?:${source})(?:['’]s)?(?![\\p{L}\\p{N}_])`, 'giu'),
});
/** Chinese and Korean set no spaces around words, and Korean adds particles. */
const script = (source: string): RegExp => new RegExp(source, 'gu');
const shifted = (days: number) => (_: Groups, today: Day) => addDays(today, days);
const nextMonday = (_: Groups, today: Day) => addDays(today, daysToMonday(today));

const RULES: readonly Rule[] = [
  { ...word('day after tomorrow|übermorgen|pasado mañana'), getDate: shifted(2) },
  { sign: script('后天|모레'), getDate: shifted(2) },
  {
    ...word('tomorrow|(?<!\\b(?:guten|am|jeden) )morgen(?! früh um)|(?<!\\b(?:la|esta|cada|de) )mañana'),
    getDate: shifted(1),
  },
  { sign: script('明天|내일'), getDate: shifted(1) },
  { ...word('day before yesterday|vorgestern|anteayer'), getDate: shifted(-2) },
  { ...word('yesterday|gestern|ayer'), getDate: shifted(-1) },
  { sign: script('昨天|어제'), getDate: shifted(-1) },
  { ...word('today|tonight|heute|hoy'), getDate: shifted(0) },
  { sign: script('今天|오늘'), getDate: shifted(0) },
  {
    ...word(
      `(?:in|en|dentro de) (${NUMBER}) (?:(days?|tage?n?|días?)|(weeks?|wochen?|semanas?)|months?|monate?n?|mes(?:es)?)`,
    ),
    getDate: ahead,
  },
  { sign: script(`(${NUMBER}) ?(?:(天)|(个?星期|周)|个月)(?:后|以后|之后)`), getDate: ahead },
  { sign: script('(\\d{1,3}) ?(?:(일)|(주일?)|개월) ?(?:후|뒤)'), getDate: ahead },
  {
    ...word(
      `(?:(${NEXT})|(${LAST})|(?:by|until|till|before|this|bis|diesen|antes del)|${AHEAD}(?:on|am|el)) (?:${WEEKDAY})`,
    ),
    getDate: weekday,
  },
  {
    sign: script(`(?:(下个?|다음 ?주 ?)|(上个?|지난 ?주? ?)|(?=[^，。,.]{2,3}(?:之?前|까지)))(?:${WEEKDAY})`),
    getDate: weekday,
  },
  { ...word('next week|nächste woche|kommende woche|(?:la )?próxima semana'), getDate: nextMonday },
  { sign: script('下个?(?:周|星期)(?![一二三四五六日天])|다음 ?주(?! ?[월화수목금토일]요일)'), getDate: nextMonday },
  {
    ...word('end of (?:the |this )?month|ende des monats|monatsende|fin de mes'),
    getDate: (_, { year, month }) => ({ year, month: month + 1, date: 0 }),
  },
];

type Span = readonly [first: Day, days: number];

const AGO = (before: string, after: string): string =>
  `${before}(${NUMBER}) (?:(days?|tage?n?|días?)|(weeks?|wochen?|semanas?)|months?|monate?n?|mes(?:es)?)${after}`;
const lastWeek = (_: Groups, today: Day): Span => [addDays(today, daysToMonday(today) - 14), 7];
const lastMonth = (_: Groups, { year, month }: Day): Span => monthOf({ year, month: month - 1 });

const PAST_RULES: readonly (Omit<Rule, 'getDate'> & { readonly getSpan: (match: Groups, today: Day) => Span })[] = [
  { ...word('day before yesterday|vorgestern|anteayer'), getSpan: (_, today) => [addDays(today, -2), 1] },
  { ...word('yesterday|gestern|ayer|last night'), getSpan: (_, today) => [addDays(today, -1), 1] },
  { sign: script('昨天|어제'), getSpan: (_, today) => [addDays(today, -1), 1] },
  { ...word(`${AGO('', ' ago')}|${AGO('(?:vor|hace) ', '')}`), getSpan: ago },
  {
    sign: script(`(${NUMBER}) ?(?:(天)|(个?星期|周)|个月)(?:以|之)?前|(\\d{1,3}) ?(?:(일)|(주일?)|개월) ?전`),
    getSpan: ago,
  },
  { ...word('last week|letzte[nr]? woche|(?:la )?semana pasada'), getSpan: lastWeek },
  { ...word('last month|letzten monat|(?:el )?mes pasado'), getSpan: lastMonth },
  { sign: script('上个?月|지난 ?달'), getSpan: lastMonth },
  { ...word(`(?:${LAST}|since|seit|${BEHIND}(?:on|am|el)) (?:${WEEKDAY})`), getSpan: lastWeekday },
  { sign: script(`(?:上个?|지난 ?주? ?)(?:${WEEKDAY})`), getSpan: lastWeekday },
  { sign: script('上个?(?:周|星期)|지난 ?주'), getSpan: lastWeek },
];

/** The first past days that a text names relative to now, from the start of the first to the end of the last. */
export function findPastDays(text: string, nowMs: number) {
  const today = getDay(nowMs);
  for (const { hint, sign, getSpan } of PAST_RULES) {
    const [match] = hint?.test(text) === false ? [] : text.matchAll(sign);
    if (match === undefined) continue;
    const [first, days] = getSpan([...match], today);
    return { words: match[0], fromMs: startOf(first), toMs: startOf(addDays(first, days)) };
  }
  return null;
}

const DATED =
  /^\s?\(\d{4}-\d\d-\d\d|^,? (?:(?:the|den|dem|el) )?(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{L}{0,6}\.? \d|\d{1,2}(?:st|nd|rd|th|\.? (?:de )?(?:jan|feb|mär|mar|apr|abr|mai|may|jun|jul|aug|ago|sep|okt|oct|nov|dez|dec|dic|ene)))/iu;

/** Adds its date to each relative date: `tomorrow (2026-03-05)`. @param atMs  when the text was said */
export function withAbsoluteDates(text: string, atMs: number): string {
  if (text.length > MOST_CHARS) return text;
  const today = getDay(atMs);
  const dates = new Map<number, { readonly end: number; readonly date: string }>();
  let taken: readonly { readonly from: number; readonly to: number }[] = [];
  for (const { hint, sign, getDate } of RULES) {
    if (hint?.test(text) === false) continue;
    for (const match of text.matchAll(sign)) {
      const [from, to] = [match.index, match.index + match[0].length];
      const isDated = DATED.test(text.slice(to)) || /\d ?[日일] ?[（(]$/.test(text.slice(0, from));
      if (isDated || taken.some((each) => from < each.to && each.from < to)) continue;
      taken = [...taken, { from, to }];
      dates.set(from, { end: to, date: toIso(getDate([...match], today)) });
    }
  }
  let dated = '';
  let at = 0;
  for (const [, { end, date }] of [...dates].toSorted(([one], [other]) => one - other)) {
    dated += `${text.slice(at, end)} (${date})`;
    at = end;
  }
  return dated + text.slice(at);
}

/** Marks the dates that `withAbsoluteDates` added and that are over: `tomorrow (2026-03-05, passed)`. */
export function withPassedDates(text: string, nowMs: number): string {
  const today = toIso(getDay(nowMs));
  return text.replace(/\((\d{4}-\d\d-\d\d)\)/g, (whole, date: string) => (date < today ? `(${date}, passed)` : whole));
}

function ahead([, count = '', days, weeks]: Groups, today: Day): Day {
  const amount = readCount(count);
  if (days !== undefined) return addDays(today, amount);
  if (weeks !== undefined) return addDays(today, 7 * amount);
  const [first, length] = monthOf({ ...today, month: today.month + amount });
  return { ...first, date: Math.min(today.date, length) };
}

/** `next Friday` is the one of the next week; `Friday` alone is the next to come. */
function weekday([, next, last, ...names]: Groups, today: Day): Day {
  const wanted = names.findIndex((name) => name !== undefined);
  const ahead = (wanted - getWeekday(today) + 7) % 7;
  if (last !== undefined) return addDays(today, ahead - 7);
  if (next !== undefined) return addDays(today, daysToMonday(today) + ((wanted + 6) % 7));
  return addDays(today, ahead === 0 ? 7 : ahead);
}

function readCount(word: string): number {
  const at = COUNTS.findIndex((words) => words.includes(word.toLowerCase()));
  return at < 0 ? Number(word) : at;
}

/** `three weeks ago` is the week around that day, `two months ago` that month. */
function ago([, ...groups]: Groups, today: Day): Span {
  const [count = '', days, weeks] = groups.slice(groups.findIndex((group) => group !== undefined));
  const amount = readCount(count);
  if (days !== undefined) return [addDays(today, -amount), 1];
  return weeks === undefined
    ? monthOf({ ...today, month: today.month - amount })
    : [addDays(today, -7 * amount - 3), 7];
}

/** The last one before today. */
function lastWeekday([, ...names]: Groups, today: Day): Span {
  const wanted = names.findIndex((name) => name !== undefined);
  return [addDays(today, -((getWeekday(today) - wanted + 6) % 7) - 1), 1];
}

function monthOf({ year, month }: Omit<Day, 'date'>): Span {
  return [{ year, month, date: 1 }, new Date(Date.UTC(year, month + 1, 0)).getUTCDate()];
}

/** Of local time. */
function getDay(atMs: number): Day {
  const at = new Date(atMs);
  return { year: at.getFullYear(), month: at.getMonth(), date: at.getDate() };
}

const startOf = ({ year, month, date }: Day): number => new Date(year, month, date).getTime();

const daysToMonday = (today: Day): number => 7 - ((getWeekday(today) + 6) % 7);

const getWeekday = ({ year, month, date }: Day): number => new Date(Date.UTC(year, month, date)).getUTCDay();

const addDays = (day: Day, days: number): Day => ({ ...day, date: day.date + days });

/** Overflowing months and dates carry over. */
const toIso = ({ year, month, date }: Day): string => new Date(Date.UTC(year, month, date)).toISOString().slice(0, 10);
