import YAML from 'yaml';
import { z } from 'zod';
import type { Problem } from '../../common/errors.ts';
import { sha256 } from '../../common/text.ts';
import { ORIGINS } from '../../common/turn.ts';
import { isOneLine, parseYaml, renderFrontMatter, splitFrontMatter } from './markdown.ts';
import { TASK_MODES, TASK_PRIORITIES, TASK_STATUSES } from './task-status.ts';

const LONGEST = 300;
/** A larger file is nothing that a person wrote as a task. */
const MAX_CHARS = 256 * 1024;
/** A name, never a path. */
export const TOPIC = /^[\p{Ll}\p{Lm}\p{Lo}\p{N}][\p{Ll}\p{Lm}\p{Lo}\p{N}_-]{0,79}$/u;

const line = z
  .union([z.string(), z.number()])
  .transform((value) => String(value).replace(/\s+/g, ' ').trim())
  .refine((text) => text !== '' && text.length <= LONGEST && isOneLine(text), `expected 1 to ${LONGEST} characters`);
const A_DATE = 'expected a date, as 2026-11-24';
const isTime = (text: string): boolean =>
  z.iso.date().safeParse(text.slice(0, 10)).success && !Number.isNaN(Date.parse(text));
const timeAsWritten = z.string(A_DATE).refine(isTime, A_DATE);
const time = timeAsWritten.transform((text) => new Date(text).toISOString());
const choice = <const T extends string>(values: readonly T[], fallback: NoInfer<T>) =>
  z.enum(values, `expected ${values.join(', ')}`).default(fallback as never);
const list = z.preprocess((value) => (typeof value === 'string' ? [value] : (value ?? [])), z.array(line).max(50));
/** A key without a value is one that is left out. */
const optional = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === null || value === '' ? undefined : value), schema.optional());

const TaskFields = z.object({
  title: line,
  created: time,
  status: choice(TASK_STATUSES, 'active'),
  priority: choice(TASK_PRIORITIES, 'medium'),
  /** A time or a cron form, see `readTrigger`. */
  trigger: optional(line),
  /** When the trigger was set, where that was later. */
  scheduled: optional(time),
  mode: choice(TASK_MODES, 'notify'),
  topic: optional(z.string().regex(TOPIC, 'expected the name of a topic: lower-case letters, digits and -')),
  depends_on: list,
  /** Of a task that the owner of the file typed: `user`. */
  origin: choice(ORIGINS, 'user'),
  /** Memories that it was made of. */
  sources: list,
  /** The sentence that was said, where the title is shorter. */
  statement: optional(line),
  /** Key of its project; '' for every project. */
  project: z.preprocess((value) => value ?? '', z.string().max(4_096)),
  /** Set while a due task is being surfaced: when that began. */
  surfacing: optional(time),
  /** The trigger time that was surfaced last, by the clock of the machine that did it. */
  fired: optional(timeAsWritten),
  /** The session that was given the question. */
  asked: optional(z.string().max(200)),
});

type TaskFields = z.infer<typeof TaskFields>;

export interface Task extends TaskFields {
  /** File name without its ending. */
  readonly name: string;
  /** All after the front matter: What, and Context. */
  readonly body: string;
}

/** Values to write; undefined removes the key. `editBody` is given all after the front matter. */
export type TaskPatch = { readonly [K in keyof TaskFields]?: TaskFields[K] | undefined } & {
  readonly editBody?: (body: string) => string;
};

export interface TaskListing {
  readonly tasks: readonly Task[];
  /** Skipped files, with the reason. */
  readonly problems: readonly Problem[];
  readonly takenBack?: readonly Task[];
}

export function renderTask({ name: _, body, ...fields }: Task): string {
  const stated = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0),
  );
  return `${renderFrontMatter(Object.fromEntries(stated))}${body}`;
}

/** @returns the task, or what is wrong with its file */
export function parseTask(text: string | null, name: string): Task | string {
  if (text === null) return 'is empty, no UTF-8 text, or not yours to read';
  if (text.length > MAX_CHARS) return `expected at most ${MAX_CHARS / 1024} KB`;
  const parts = splitFrontMatter(text);
  if (parts === null) return 'front matter: expected it between two lines of ---';
  const values = parseYaml(parts.lines.join('\n'));
  if (typeof values === 'string') return `front matter: ${values}`;
  const [day] = /^\d{4}-\d\d-\d\d/.exec(name) ?? [];
  const read = TaskFields.safeParse({ created: day, ...values });
  if (read.success) return { ...read.data, name, body: parts.rest };
  const [issue] = read.error.issues;
  return `${issue?.path.join('.')}: ${issue?.message}`;
}

/** The text with these values set; everything else, comments included, stays as it is. */
export function patchTask(text: string, { editBody = (body) => body, ...patch }: TaskPatch): string {
  const parts = splitFrontMatter(text);
  if (parts === null) return text;
  const document = YAML.parseDocument(parts.lines.join('\n'), { schema: 'core' });
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) document.delete(key);
    else document.set(key, value);
  }
  const head = `---\n${document.toString({ lineWidth: 0 })}---\n`;
  return (/^[^\n]*\r\n/.test(text) ? head.replace(/\n/g, '\r\n') : head) + editBody(parts.rest);
}

/** Six hex digits. */
export const taskId = (name: string): string => sha256(name.toLowerCase(), 6);

/** Names and ids of open tasks. A task whose file cannot be read counts as open, because an editor may be saving it. */
export function openNames({ tasks, problems }: TaskListing): ReadonlySet<string> {
  const open = tasks.filter(({ status }) => status !== 'done').map(({ name }) => name);
  const files = problems.map(({ file }) => file).filter((file) => !/[\\/]done[\\/]\d{4}-\d\d[\\/]/.test(file));
  const unread = files.map((file) => file.replace(/^.*[\\/]|\.md$/g, ''));
  return new Set([...open, ...unread].flatMap((name) => [name.toLowerCase(), taskId(name)]));
}
