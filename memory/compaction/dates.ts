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
const NUMBERS: Readonly<Record<string, number>> = {
  a: 1,
  an: 1,
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  ten: 10,
  einem: 1,
  einer: 1,
  zwei: 2,
  drei: 3,
  vier: 4,
  un: 1,
  una: 1,
  dos: 2,
  tres: 3,
  cuatro: 4,
  一: 1,
  两: 2,
  二: 2,
  三: 3,
  四: 4,
};
const NUMBER = `\\d{1,3}|${Object.keys(NUMBERS)
  .toSorted((one, other) => other.length - one.length)
  .join('|')}`;

/** Says that what follows is to come: `on Monday` alone may be over. */
const AHEAD =
  "(?<=(?:will|must|should|has to|have to|needs? to|going to|'ll|wird|werden|muss|soll|hay que|tiene que|va a)(?![\\p{L}])[^.!?]{0,80})";

interface Day {
  readonly year: number;
  readonly month: number;
  readonly date: number;
}

interface Rule {
  /** Matches wherever `sign` does. V8 discards its compiled code when idle, and compiles it in a tenth of the time. */
  readonly hint?: RegExp;
  readonly sign: RegExp;
  readonly getDate: (match: readonly (string | undefined)[], today: Day) => Day;
}

const word = (source: string): Pick<Rule, 'hint' | 'sign'> => ({
  hint: new RegExp(source.replaceAll(AHEAD, ''), 'iu'),
  sign: new RegExp(`(?<![\\p{L}\\p{N}_])(?:${source})(?![\\p{L}\\p{N}_])`, 'giu'),
});
/** Chinese and Korean set no spaces around words, and Korean adds particles. */
const script = (source: string): RegExp => new RegExp(source, 'gu');
const shifted =
  (days: number) =>
  (_: readonly (string | undefined)[], today: Day): Day =>
    addDays(today, days);

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
      `(?:in|within|en|dentro de) (${NUMBER}) (?:(days?|tage?n?|días?)|(weeks?|wochen?|semanas?)|months?|monate?n?|mes(?:es)?)`,
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
  {
    ...word('next week|nächste woche|kommende woche|(?:la )?próxima semana'),
    getDate: (_, today) => addDays(today, daysToMonday(today)),
  },
  {
    sign: script('下个?(?:周|星期)(?![一二三四五六日天])|다음 ?주(?! ?[월화수목금토일]요일)'),
    getDate: (_, today) => addDays(today, daysToMonday(today)),
  },
  {
    ...word('end of (?:the |this )?month|ende des monats|monatsende|fin de mes'),
    getDate: (_, { year, month }) => ({ year, month: month + 1, date: 0 }),
  },
];

/** Adds its date to each relative date: `tomorrow (2026-03-05)`. @param atMs  when the text was said */
export function withAbsoluteDates(text: string, atMs: number): string {
  if (text.length > MOST_CHARS) return text;
  const now = new Date(atMs);
  const today = { year: now.getFullYear(), month: now.getMonth(), date: now.getDate() };
  const dates = new Map<number, { readonly end: number; readonly date: string }>();
  let taken: readonly { readonly from: number; readonly to: number }[] = [];
  for (const { hint, sign, getDate } of RULES) {
    if (hint?.test(text) === false) continue;
    for (const match of text.matchAll(sign)) {
      const [from, to] = [match.index, match.index + match[0].length];
      const isDated = /^\s?\(\d{4}-\d\d-\d\d/.test(text.slice(to, to + 13));
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
  const now = new Date(nowMs);
  const today = toIso({ year: now.getFullYear(), month: now.getMonth(), date: now.getDate() });
  return text.replace(/\((\d{4}-\d\d-\d\d)\)/g, (whole, date: string) => (date < today ? `(${date}, passed)` : whole));
}

function ahead([, count = '', days, weeks]: readonly (string | undefined)[], today: Day): Day {
  const amount = NUMBERS[count.toLowerCase()] ?? Number(count);
  if (days !== undefined) return addDays(today, amount);
  return weeks === undefined ? { ...today, month: today.month + amount } : addDays(today, 7 * amount);
}

/** `next Friday` is the one of the next week; `Friday` alone is the next to come. */
function weekday([, next, last, ...names]: readonly (string | undefined)[], today: Day): Day {
  const wanted = names.findIndex((name) => name !== undefined);
  const ahead = (wanted - getWeekday(today) + 7) % 7;
  if (last !== undefined) return addDays(today, ahead - 7);
  if (next !== undefined) return addDays(today, daysToMonday(today) + ((wanted + 6) % 7));
  return addDays(today, ahead === 0 ? 7 : ahead);
}

function daysToMonday(today: Day): number {
  return 7 - ((getWeekday(today) + 6) % 7);
}

function getWeekday({ year, month, date }: Day): number {
  return new Date(Date.UTC(year, month, date)).getUTCDay();
}

function addDays(day: Day, days: number): Day {
  return { ...day, date: day.date + days };
}

/** Overflowing months and dates carry over. */
function toIso({ year, month, date }: Day): string {
  return new Date(Date.UTC(year, month, date)).toISOString().slice(0, 10);
}
