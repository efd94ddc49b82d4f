import type { UiSavings } from './types.ts';

export interface Column {
  readonly name: string;
  /** Property of the style that has its colour. */
  readonly tone: string;
  readonly values: readonly number[];
}

/** The lines of the savings chart; the last one adds up what was saved, and goes down where a day lost. */
export function getColumns(days: UiSavings['days'], unit: 'money' | 'tokens'): readonly Column[] {
  const isMoney = unit === 'money';
  const each = (pick: (day: UiSavings['days'][number]) => number): number[] => days.map(pick);
  const saved = each((day) => (isMoney ? day.net_saved_usd : day.original - day.sent - day.own));
  return [
    { name: 'untouched', tone: '--trimmed', values: each((day) => (isMoney ? day.untouched_usd : day.original)) },
    { name: 'sent', tone: '--accent', values: each((day) => (isMoney ? day.sent_usd : day.sent)) },
    { name: 'own calls', tone: '--warn', values: each((day) => (isMoney ? day.own_usd : day.own)) },
    { name: 'saved so far', tone: '--good', values: running(saved) },
  ];
}

function running(values: readonly number[]): number[] {
  let sum = 0;
  return values.map((value) => {
    sum += value;
    return sum;
  });
}
