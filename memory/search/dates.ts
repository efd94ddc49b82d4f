import { findPastDays } from '../model/dates.ts';

/** In English, German and Spanish. */
const MONTHS = (
  'january|januar|enero february|februar|febrero march|märz|marzo april|abril may|mai|mayo june|juni|junio ' +
  'july|juli|julio august|agosto september|septiembre october|oktober|octubre november|noviembre ' +
  'december|dezember|diciembre'
).split(' ');
/** In Chinese and Korean, with the day. */
const NUMBERED = /(?<!\d)(\d{1,2})[月월](?: ?(\d{1,2})[日号일])?/;
export const MONTH: string = MONTHS.join('|');
/** The month, not the verb. */
const IN_MAY = /\b(?:in|on|of|during|early|late|mid|\d{1,2}(?:st|nd|rd|th))[ -]may\b|\bmay (?:\d|of\b)/;
const YEAR = /\b(?:19|20)\d{2}\b/;
const DAY_OF_MONTH = new RegExp(
  `\\b(\\d{1,2})(?:st|nd|rd|th|\\.)?(?: of| de)? (?:${MONTH})\\b|\\b(?:${MONTH}) (\\d{1,2})(?:st|nd|rd|th)?\\b`,
);
/** So far a day may be off and still be meant. */
const DAYS_OFF = 3;
const OFF_SHARE = 0.5;

const DATE = new RegExp(
  `${NUMBERED.source}|\\b(?:\\d{1,2}(?:st|nd|rd|th|\\.)?(?: of| de)? )?(?:${MONTH})\\b(?: \\d{1,2}(?:st|nd|rd|th)?\\b)?(?:,? ?${YEAR.source})?|\\bin ${YEAR.source}`,
  'gi',
);

/** A date as a question names it; parts it does not name are null. */
export interface NamedDate {
  /** From 0; empty when none is named. */
  readonly months: readonly number[];
  readonly year: number | null;
  readonly day: number | null;
  /** Days reckoned from now ("last week"); only where no month is named. */
  readonly past: ReturnType<typeof findPastDays>;
  /** The question without the words of its date. */
  readonly rest: string;
}

/** The month, the year or the past days that a question names; null where it names none. */
export function namedDate(question: string, nowMs: number): NamedDate | null {
  const lower = question.toLowerCase();
  const words = new Set(lower.match(/[a-zä]+/g));
  const isNamed = (month: string): boolean => words.has(month) && (month !== 'may' || IN_MAY.test(lower));
  const numbered = NUMBERED.exec(lower);
  const months = MONTHS.flatMap((names, at) =>
    Number(numbered?.[1]) === at + 1 || names.split('|').some(isNamed) ? [at] : [],
  );
  const year = YEAR.exec(lower)?.[0];
  const past = months.length === 0 ? findPastDays(question, nowMs) : null;
  if (months.length === 0 && year === undefined && past === null) return null;
  const day = (numbered?.[2] ? [numbered[2]] : DAY_OF_MONTH.exec(lower)?.slice(1))?.find(Boolean);
  return {
    ...{ months, past, year: year === undefined ? null : Number(year), day: day === undefined ? null : Number(day) },
    rest: past === null ? question.replace(DATE, ' ') : question.replace(past.words, ' '),
  };
}

/** How rare the date is among turns: inverse document frequency, 0 where all are of it. */
export function getDateRarity(date: NamedDate, turns: readonly { readonly atMs: number }[]): number {
  const own = turns.reduce((sum, { atMs }) => sum + dateAgreement(date, atMs), 0);
  return Math.log((turns.length + 0.5) / (own + 0.5));
}

/** 1 where the day of `atMs` is the one named, half where the month is right and the day is not, else 0. */
export function dateAgreement({ months, year, day, past }: NamedDate, atMs: number): number {
  if (past !== null) return past.fromMs <= atMs && atMs < past.toMs ? 1 : 0;
  const at = new Date(atMs);
  if (months.length > 0 && !months.includes(at.getMonth())) return 0;
  if (year !== null && at.getFullYear() !== year) return 0;
  if (day === null || months.length === 0) return 1;
  return Math.abs(at.getDate() - day) > DAYS_OFF ? OFF_SHARE : 1;
}
