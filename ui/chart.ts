import type { Row, UiSavings } from './types.ts';

export interface Column {
  readonly name: string;
  /** Property of the style that has its colour. */
  readonly tone: string;
  readonly values: readonly number[];
}

/** What a row says in money, or in tokens. */
export function inUnit(row: Row, unit: 'money' | 'tokens') {
  const { original, sent, own, untouched_usd, sent_usd, own_usd, net_saved_usd } = row;
  if (unit === 'money') return { untouched: untouched_usd, sent: sent_usd, own: own_usd, saved: net_saved_usd };
  return { untouched: original, sent, own, saved: original - sent - own };
}

/** The lines of the savings chart; the last one adds up what was saved, and goes down where a day lost. */
export function getColumns(days: UiSavings['days'], unit: 'money' | 'tokens'): readonly Column[] {
  const rows = days.map((day) => inUnit(day, unit));
  return [
    { name: 'untouched', tone: '--trimmed', values: rows.map(({ untouched }) => untouched) },
    { name: 'sent', tone: '--accent', values: rows.map(({ sent }) => sent) },
    { name: 'own calls', tone: '--warn', values: rows.map(({ own }) => own) },
    { name: 'saved so far', tone: '--good', values: running(rows.map(({ saved }) => saved)) },
  ];
}

function running(values: readonly number[]): number[] {
  let sum = 0;
  return values.map((value) => {
    sum += value;
    return sum;
  });
}

const DAY_MS = 86_400_000;

/** Place of "2026-11-02" on the axis: days, since in some time zones a day of the year has no midnight. */
export const dayNumber = (day: string): number => Date.parse(day) / DAY_MS;

export function dayName(number: number, form: Intl.DateTimeFormatOptions = {}, language?: string): string {
  return new Intl.DateTimeFormat(language, { ...form, timeZone: 'UTC' }).format(number * DAY_MS);
}
