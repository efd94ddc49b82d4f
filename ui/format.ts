const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
export const whole = new Intl.NumberFormat('en');

/** "1.2K", "3.4M". */
export function amount(value: number): string {
  return compact.format(value);
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${whole.format(value)} ${value === 1 ? one : many}`;
}

/** "$0.0042", "$1.20", "-$3": cents matter only below ten dollars. */
export function money(usd: number): string {
  const size = Math.abs(usd);
  const digits = size === 0 ? 2 : size < 0.01 ? 4 : size < 10 ? 2 : 0;
  return `${usd < 0 && size >= 0.00005 ? '-' : ''}$${size.toFixed(digits)}`;
}

/** "27 %"; '' where there is nothing to compare with. */
export function share(part: number, of: number): string {
  return of === 0 ? '' : `${Math.round((100 * part) / of)} %`;
}

/** "0.4 ms", "840 ms", "2.4 s", "3 min". */
export function duration(ms: number): string {
  if (ms > 0 && ms < 10) return `${Math.max(0.1, ms).toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} days`;
}

/** "2026-11-27", in the zone of the user. */
export function day(ms: number): string {
  return new Intl.DateTimeFormat('en-CA', { dateStyle: 'short' }).format(ms);
}

/** In the zone of the user: the time of today, the weekday of the last six days, else the date. */
export function when(iso: string, nowMs: number, timeZone?: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  const zone = timeZone === undefined ? {} : { timeZone };
  const getDay = (date: Date): string => new Intl.DateTimeFormat('en-CA', { dateStyle: 'short', ...zone }).format(date);
  const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', ...zone }).format(at);
  if (getDay(at) === getDay(new Date(nowMs))) return time;
  const ageMs = nowMs - at.getTime();
  if (ageMs > 0 && ageMs < 6 * 86_400_000) {
    return `${new Intl.DateTimeFormat('en', { weekday: 'short', ...zone }).format(at)} ${time}`;
  }
  return `${getDay(at)} ${time}`;
}

/** The last folder of a project's key. */
export function projectName(project: string): string {
  if (project === '') return 'no project';
  if (project === '*') return 'every project';
  return project.split('/').filter(Boolean).at(-1) ?? project;
}

/** Names that tell projects apart: of several with the same name, the whole key. */
export function projectNames(projects: readonly string[]): string[] {
  const names = projects.map(projectName);
  return projects.map((key, at) => (names.filter((name) => name === names[at]).length > 1 ? key : projectName(key)));
}
