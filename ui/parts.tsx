import { computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { CallError, call, link, type Query, touch } from './client.ts';
import { when } from './format.ts';
import { Icon } from './icons.tsx';
import { getHash, linkParts } from './route.ts';

/** Changes each minute, so that times stay true. */
export const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
  // No event tells of a line of the log, of checks and uptime, or that a day begins.
  if (!document.hidden) touch(['status']);
}, 60_000);

const scheme = matchMedia('(prefers-color-scheme: dark)');
/** Changes with the colors of the page, of which drawings have taken theirs. */
export const isDark = signal(scheme.matches);
scheme.addEventListener('change', ({ matches }) => (isDark.value = matches));

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {when(at, now.value)}
    </time>
  );
}

/** What there is to say where a view has nothing to show: why, and what to do first. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

interface AnswerProps<T> {
  readonly of: Pick<Query<T>, 'data' | 'error'>;
  readonly children: (data: T) => ComponentChildren;
}

/** Draws an answer once it is there, with the newest error above it. */
export function Answer<T>({ of: { data, error }, children }: AnswerProps<T>) {
  return (
    <>
      {error !== undefined && (
        <p class="problem" role="alert">
          {error.message}
        </p>
      )}
      {data !== undefined
        ? children(data)
        : error === undefined && (
            <p class="muted reading">
              {['live', 'connecting'].includes(link.value)
                ? 'Reading from the engine…'
                : 'Shown once the engine is back.'}
            </p>
          )}
    </>
  );
}

/** A view that draws one answer. */
export function View<T>({ title, of, children }: AnswerProps<T> & { title: string }) {
  return (
    <div class="view fill">
      <h1>{title}</h1>
      <Answer of={of}>{children}</Answer>
    </div>
  );
}

export function Figure({ label, value, note }: { label: string; value: string; note?: string | undefined }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        <strong>{value}</strong>
        {note !== undefined && <span class="muted"> {note}</span>}
      </dd>
    </div>
  );
}

interface Notice {
  readonly text: string;
  /** Given to the operation that takes it back. */
  readonly undo?: string;
  /** Carries it out without a way back; absent where it is done. */
  readonly finish?: (() => Promise<unknown>) | undefined;
  /** Why the change after it failed: the way back stays. */
  readonly problem?: string;
}

/** Of a change with `finish`: the engine carries it out then. */
const UNDO_MS = 20_000;

/** The newest last, above removals that can still be taken back. */
const notices = signal<readonly Notice[]>([]);
const notice = computed(() => notices.value.at(-1) ?? null);

export function dropNotice(undo: string | undefined): void {
  notices.value = notices.value.filter((each) => each.undo !== undo);
}

/**
 * Runs a change, says what was done with a way back, or why it failed. Resolves with whether it was done.
 *
 * @param finish  carries out a change that waits for the user to take it back
 */
export async function change(
  text: string,
  run: () => Promise<unknown>,
  finish?: () => Promise<unknown>,
): Promise<boolean> {
  try {
    const result = await run();
    const undo = (result as { undo?: unknown } | null)?.undo;
    const done: Notice = typeof undo === 'string' ? { text, undo, finish } : { text };
    notices.value = [...notices.value.filter((each) => each.finish !== undefined), done];
    if (finish !== undefined) setTimeout(() => dropNotice(done.undo), UNDO_MS);
    touch(['memory', 'library', 'tasks', 'status']);
    return true;
  } catch (error) {
    const last: Notice = notice.value?.undo === undefined ? { text: '' } : notice.value;
    dropNotice(last.undo);
    const problem = error instanceof CallError ? error.message : String(error);
    notices.value = [...notices.value, { ...last, problem }];
    return false;
  }
}

/** Hides a memory or a fact; the engine removes it when the time to take it back is over. */
export function forget(id: string): Promise<boolean> {
  return change(
    'Forgotten. It is removed for good in 20 seconds.',
    () => call('ui/forget', { ids: [id] }),
    () => call('ui/forget', { ids: [id], final: true }),
  );
}

/** Sent and not yet answered: pressing the key again takes back what was done before. */
const undoing = new Set<string>();

export async function takeBack(): Promise<void> {
  const { undo } = notices.value.findLast((each) => each.undo !== undefined && !undoing.has(each.undo)) ?? {};
  if (undo === undefined) return;
  undoing.add(undo);
  if (await change('Undone.', async () => void (await call('ui/undo', { undo })))) dropNotice(undo);
  undoing.delete(undo);
}

async function finish(): Promise<void> {
  const { finish: run, undo } = notice.value ?? {};
  if (run !== undefined && (await change('Removed for good.', run))) dropNotice(undo);
}

const ADDRESS_MS = 300;

/** Puts what is shown into the address, for a reload, the way back and links. @returns takes it back until then */
export function showAddress(route: Parameters<typeof getHash>[0]): () => void {
  const { hash } = location;
  // Browsers refuse more than a few changes in a second.
  const timer = setTimeout(() => {
    if (location.hash === hash) history.replaceState(null, '', getHash(route));
  }, ADDRESS_MS);
  return () => clearTimeout(timer);
}

/** A text of the library; what it links to in memory can be opened. */
export function LinkedText({ text }: { text: string }) {
  return (
    <>
      {linkParts(text).map(({ text: part, href }, at) =>
        href === undefined ? (
          part
        ) : (
          <a key={at} href={href}>
            {part}
          </a>
        ),
      )}
    </>
  );
}

/** Files of the home that cannot be read or written. */
export function Problems({ of }: { of: readonly { readonly file: string; readonly message: string }[] }) {
  return (
    <>
      {of.map(({ file, message }) => (
        <p key={`${file} ${message}`} class="problem">
          {file}: {message}
        </p>
      ))}
    </>
  );
}

export function Notices() {
  const shown = notice.value;
  return (
    <div class="notices" role="status">
      {shown !== null && (
        <div class={shown.problem === undefined ? 'notice' : 'notice problem'}>
          <span>
            {shown.problem !== undefined && <p>{shown.problem}</p>}
            {shown.text}
          </span>
          {shown.undo !== undefined && (
            <button type="button" onClick={() => void takeBack()}>
              <Icon name="undo" /> Undo <kbd>u</kbd>
            </button>
          )}
          {shown.finish !== undefined && (
            <button type="button" onClick={() => void finish()}>
              Remove now
            </button>
          )}
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => dropNotice(shown.undo)}>
            <Icon name="close" />
          </button>
        </div>
      )}
    </div>
  );
}

export function Tabs<T extends string>(props: {
  label: string;
  of: readonly T[];
  chosen: T;
  getName?: (tab: T) => string;
  onChoose: (tab: T) => void;
}) {
  const { label, of, chosen, getName = (tab: T) => tab, onChoose } = props;
  return (
    <div class="tabs" role="group" aria-label={label}>
      {of.map((tab) => (
        <button type="button" key={tab} aria-pressed={tab === chosen} onClick={() => onChoose(tab)}>
          {getName(tab)}
        </button>
      ))}
    </div>
  );
}

interface SelectProps<T extends string> {
  readonly label?: string;
  readonly value: T;
  readonly of: readonly (readonly [value: T, text: string])[];
  readonly onChoose: (value: T) => void;
}

export function Select<T extends string>({ label, value, of, onChoose }: SelectProps<T>) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value as T)}>
      {of.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** A row of a list: a title, and what else there is to know. */
export function Line({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="line">
      <b>{title}</b>
      <span class="muted">{children}</span>
    </div>
  );
}

const KEYS_OFF = 'comet-cc-keys-off';

/** Whether characters are shortcuts in this browser: speech input and a slip of the hand type them too (WCAG 2.1.4). */
export const areKeysOn = (): boolean => localStorage.getItem(KEYS_OFF) === null;

export function switchKeys(on: boolean): void {
  if (on) localStorage.removeItem(KEYS_OFF);
  else localStorage.setItem(KEYS_OFF, '1');
}
