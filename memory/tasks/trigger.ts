import { DAY_MS } from '../../common/async.ts';
import type { Task } from '../model/task.ts';
import { TASK_PRIORITIES } from '../model/task-status.ts';

/** When a task is due: once, or again and again. */
export type Trigger =
  | { readonly kind: 'time'; readonly atMs: number }
  | { readonly kind: 'cron'; readonly form: string };

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;
const DATE = /^(\d{4})[-/](\d\d)[-/](\d\d)/;
const CRON = /^(?:@\w+|[\d*/,LW#?-]+(?: [\w*/,#?-]+){4})$/i;
/** A day that comes again. */
const EVERY =
  /\b(?:every|each) (day|morning|weekday|(?:sun|mon|tues|wednes|thurs|fri|satur)day)(?:,? at (\d{1,2})(?::([0-5]\d))?(?: ?([ap])\.?m\b\.?)?)?(?!,? (?:and|or) |[\p{L}\d:])/iu;
const DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
/** Looked for in the future all the same. */
const PAST = /\b(?:last|past)\b/i;
const PART_OF_DAY = /night|evening|morning|noon/i;
/** Of a day that is named without a time. */
const HOUR = 9;
const EXPECTED =
  'expected a time as "tomorrow 9:00", "2026-12-01 14:30", "in 2 hours" or "every monday at 9:30", or a cron form as "0 9 * * 1-5"';

/**
 * Reads a time or a cron form in this machine's time zone. The parsers are loaded for what is neither `now` nor a whole
 * ISO time.
 * @param nowMs  what relative times refer to
 * @returns the trigger, or what is wrong with the text
 */
export async function readTrigger(text: string, nowMs: number): Promise<Trigger | string> {
  const phrase = text.trim().replace(/\s+/g, ' ');
  if (phrase.toLowerCase() === 'now') return { kind: 'time', atMs: nowMs };
  const again = EVERY.exec(phrase);
  if (CRON.test(phrase) || again?.[0] === phrase) return readCron(again === null ? phrase : asCron(again), nowMs);
  const atMs = ISO.test(phrase) ? Date.parse(phrase) : await readTime(phrase, nowMs);
  if (Number.isNaN(atMs) || !isInCalendar(phrase)) return `${EXPECTED} (got "${phrase}")`;
  return atMs <= nowMs - DAY_MS ? `expected a time to come (got "${phrase}")` : { kind: 'time', atMs };
}

function asCron([, day = '', hour = `${HOUR}`, minute = '0', half = '']: RegExpExecArray): string {
  const at = DAYS.indexOf(day.toLowerCase());
  const days = at >= 0 ? at : /^weekday/i.test(day) ? '1-5' : '*';
  return `${Number(minute)} ${half === '' ? Number(hour) : (Number(hour) % 12) + (/p/i.test(half) ? 12 : 0)} * * ${days}`;
}

/** False for a date as `2027-02-30`, which parsers take for another day. */
function isInCalendar(phrase: string): boolean {
  const [date, year, month, day] = (DATE.exec(phrase) ?? []).map(Number);
  if (date === undefined) return true;
  const at = new Date(Date.UTC(Number(year), Number(month) - 1, day));
  return at.getUTCMonth() === Number(month) - 1 && at.getUTCDate() === day;
}

/** How a person asks to be reminded of something. */
const REMINDER =
  /^(?:please |and |also ){0,2}(?:(?:can|could|will) you )?remind me\b(?! (?:how|of|what|when|where|which|who|why)\b)|^to-?dos?\s?[:–-]\s|\b(?:later|at some point),? (?:i|we) (?:have to|must|need to|should)\b/i;

export const isReminder = (text: string): boolean => REMINDER.test(text);

/** `trigger`: the one that a sentence names; `title`: what a reminder plainly asks for, else the sentence. */
export async function readReminder(sentence: string, nowMs: number) {
  const { casual } = await import('chrono-node/en');
  // Memory adds a date in parentheses after a word such as "tomorrow".
  const phrase = sentence.replace(/ \(\d{4}-\d\d-\d\d\)/g, '');
  const [every = ''] = EVERY.exec(phrase) ?? [];
  const again = every === '' ? null : await readTrigger(every, nowMs);
  if (again !== null && typeof again === 'object' && again.kind === 'cron')
    return { trigger: again.form, title: findTitle(phrase, every) ?? sentence };
  const [found, another] = casual.parse(phrase, { instant: new Date(nowMs) }, { forwardDate: true });
  const read = found === undefined || another !== undefined ? null : await readTrigger(found.text, nowMs);
  if (found === undefined || read === null || typeof read === 'string' || read.kind === 'cron')
    return { title: findTitle(sentence, '') ?? sentence };
  // A month alone may be a person's name, such as April.
  const isTime = (['hour', 'day', 'weekday'] as const).some((part) => found.start.isCertain(part));
  return { trigger: localIso(read.atMs), title: findTitle(phrase, isTime ? found.text : '') ?? sentence };
}

const REQUEST = /^(?:please |and |also ){0,2}(?:(?:can|could|will) you )?remind me to (?=\S)|^to-?dos?\s?[:–-]\s/i;
/** Words before a time that make it part of the task. */
const BOUND =
  / (?:a|about|after|and|at|before|between|by|every|for|from|in|of|on|or|since|than|the|to|until|with)$|\b(?:because|how|if|that|what|when|where|which|who|why)\b/i;

/** The task without the words that ask for it, and without `time` right after them or at the end. */
function findTitle(phrase: string, time: string): string | null {
  const plain = phrase.replace(` me ${time} to `, ' me to ').replace(` me on ${time} to `, ' me to ');
  const words = plain.replace(REQUEST, '').replace(/[.!?]{1,3}$/, '');
  if (!REQUEST.test(plain)) return null;
  const before = words.slice(0, -time.length - 1).replace(/,$/, '');
  const isLast = time !== '' && plain === phrase && words.endsWith(` ${time}`) && !BOUND.test(before);
  const title = isLast ? before : words;
  return /\p{L}/u.test(title) ? title.replace(/^[a-z](?=[a-z]*(?: |$))/, (letter) => letter.toUpperCase()) : null;
}

/** NaN where the whole text is not one time. */
async function readTime(phrase: string, nowMs: number): Promise<number> {
  if (PAST.test(phrase)) return Number.NaN;
  const { casual } = await import('chrono-node/en');
  const [found, another] = casual.parse(phrase, { instant: new Date(nowMs) }, { forwardDate: true });
  if (found === undefined || another !== undefined || found.text.length !== phrase.length) return Number.NaN;
  const at = found.start.date();
  // chrono-node takes a month after 31 January for 3 March.
  const isMonths = found.start.tags().has('result/relativeDate') && !found.start.isCertain('day');
  if (isMonths && at.getDate() < new Date(nowMs).getDate()) at.setDate(0);
  if (found.start.isCertain('hour') || PART_OF_DAY.test(phrase)) return at.getTime();
  const morning = new Date(at).setHours(HOUR, 0, 0, 0);
  return morning > nowMs ? morning : at.getTime();
}

async function openCron(form: string) {
  const { Cron } = await import('croner');
  return new Cron(form, { mode: '5-part', paused: true });
}

async function readCron(form: string, nowMs: number): Promise<Trigger | string> {
  try {
    const next = (await openCron(form)).nextRun(new Date(nowMs));
    return next === null ? `expected a day that comes (got "${form}")` : { kind: 'cron', form };
  } catch (error) {
    return `${(error as Error).message} (got "${form}")`;
  }
}

/** When a trigger as memory writes it is due once; NaN where it comes again: `Date` takes `0 9 * * 1` for a day of 2000. */
export const onceMs = (trigger: string): number => (CRON.test(trigger) ? Number.NaN : Date.parse(trigger));

/** What relative times of a task refer to, ms; nothing before it is due. A day without a time begins here, not in UTC. */
export function scheduledMs({ scheduled, created }: Pick<Task, 'scheduled' | 'created'>): number {
  return Date.parse((scheduled ?? created).replace('T00:00:00.000Z', 'T00:00'));
}

/** It surfaced, and is still open; what comes again is never overdue. */
export function isOverdue({ status, trigger = '', fired }: Pick<Task, 'status' | 'trigger' | 'fired'>): boolean {
  return status === 'active' && fired !== undefined && !CRON.test(trigger.trim());
}

/** Rank of its priority, one more where it is overdue; the highest is the most urgent. */
export const getUrgency = (task: Task): number => TASK_PRIORITIES.indexOf(task.priority) + Number(isOverdue(task));

/** Why the trigger of a task that was edited by hand cannot be used. */
export async function triggerProblem(task: Task): Promise<string | null> {
  const read = task.trigger === undefined ? null : await readTrigger(task.trigger, scheduledMs(task));
  return typeof read === 'string' ? read : null;
}

/**
 * The time for which a trigger is due now: of several that were missed the latest; null where none is.
 * @param past.firedMs  the trigger time that was surfaced last; null for none
 */
export async function dueTime(
  trigger: Trigger,
  { sinceMs, firedMs, nowMs }: { readonly sinceMs: number; readonly firedMs: number | null; readonly nowMs: number },
): Promise<number | null> {
  if (trigger.kind === 'time') return trigger.atMs <= nowMs && firedMs !== trigger.atMs ? trigger.atMs : null;
  const cron = await openCron(trigger.form);
  // Around a change of the clock either of them may be off.
  const first = cron.nextRun(new Date(Math.min(firedMs ?? sinceMs, nowMs)));
  const runs = [...cron.previousRuns(3, new Date(nowMs + 1_000)), ...(first === null ? [] : [first])];
  const latest = Math.max(...runs.map((run) => run.getTime()).filter((runMs) => runMs <= nowMs));
  if (latest <= sinceMs || latest === firedMs) return null;
  // A clock that was wrong by more than a day must not silence a task for as long.
  const isSurfaced = firedMs !== null && latest < firedMs && firedMs < nowMs + DAY_MS;
  return isSurfaced ? null : latest;
}

/** The next time after `nowMs`; null for a time that has passed. */
export async function nextTime(trigger: Trigger, nowMs: number): Promise<number | null> {
  if (trigger.kind === 'time') return trigger.atMs > nowMs ? trigger.atMs : null;
  return (await openCron(trigger.form)).nextRun(new Date(nowMs))?.getTime() ?? null;
}

/** `2026-11-24T09:00:00+01:00`, in this machine's time zone. */
export function localIso(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number): string => String(Math.floor(Math.abs(value))).padStart(2, '0');
  const offset = -at.getTimezoneOffset();
  const day = `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day}T${clock}${offset < 0 ? '-' : '+'}${two(offset / 60)}:${two(offset % 60)}`;
}
