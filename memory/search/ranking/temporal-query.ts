const MONTHS = 'january february march april may june july august september october november december'.split(' ');
const MONTH = MONTHS.join('|');
const DAY_MS = 86_400_000;

const ASKS_WHEN =
  /^(?:when|how long|what (?:date|day|month|year|time)|which (?:month|year|day))\b|\bhow long ago\b|\bwhen (?:did|was|is|were|will|has)\b/i;
const TELLS_TIME = new RegExp(
  '\\b(?:yesterday|today|tonight|tomorrow|ago|last|next|this (?:week|month|year|weekend|morning|season)|recently|since|' +
    `weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day|${MONTH}|\\d+ (?:days?|weeks?|months?|years?))\\b`,
  'i',
);
/** The month, not the verb. */
const IN_MAY = /\b(?:in|on|of|during|early|late|mid|\d{1,2}(?:st|nd|rd|th))[ -]may\b|\bmay (?:\d|of\b)/;
const YEAR = /\b(?:19|20)\d{2}\b/;
const DAY_OF_MONTH = new RegExp(
  `\\b(\\d{1,2})(?:st|nd|rd|th)?(?: of)? (?:${MONTH})\\b|\\b(?:${MONTH}) (\\d{1,2})(?:st|nd|rd|th)?\\b`,
);
/** So far a day may be off and still be meant. */
const DAYS_OFF = 3;
const OFF_SHARE = 0.5;

/** A date as a question names it; parts it does not name are null. */
export interface NamedDate {
  /** From 0; empty when none is named. */
  readonly months: readonly number[];
  readonly year: number | null;
  readonly day: number | null;
}

/** Whether the question asks for a time. */
export function asksWhen(question: string): boolean {
  return ASKS_WHEN.test(question.trim());
}

/** Whether a text tells a time: a date, or one that is reckoned from when it was said. */
export function tellsTime(text: string): boolean {
  return TELLS_TIME.test(text);
}

/** The month or year that a question names; null where it names neither. */
export function namedDate(question: string): NamedDate | null {
  const lower = question.toLowerCase();
  const words = new Set(lower.match(/[a-z]+/g));
  const months = MONTHS.flatMap((month, at) =>
    words.has(month) && (month !== 'may' || IN_MAY.test(lower)) ? [at] : [],
  );
  const year = YEAR.exec(lower)?.[0];
  if (months.length === 0 && year === undefined) return null;
  const day = DAY_OF_MONTH.exec(lower);
  return { months, year: year === undefined ? null : Number(year), day: day ? Number(day[1] ?? day[2]) : null };
}

/** 1 where the day of `atMs` (UTC) is the one named, half where the month is right and the day is not, else 0. */
export function dateAgreement({ months, year, day }: NamedDate, atMs: number): number {
  const at = new Date(Math.floor(atMs / DAY_MS) * DAY_MS);
  if (months.length > 0 && !months.includes(at.getUTCMonth())) return 0;
  if (year !== null && at.getUTCFullYear() !== year) return 0;
  if (day === null || months.length === 0) return 1;
  return Math.abs(at.getUTCDate() - day) > DAYS_OFF ? OFF_SHARE : 1;
}
