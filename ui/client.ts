import { effect, signal, untracked } from '@preact/signals';
import { useLayoutEffect, useState } from 'preact/hooks';
import type { Input, Name, Result } from './types.ts';

/** What an event says has changed. */
export type Topic = 'status' | 'request' | 'memory' | 'library' | 'tasks';
/** `stopped`: on purpose; `gone`: it should have come back by now. */
type Link = 'connecting' | 'live' | 'lost' | 'stopped' | 'gone' | 'expired';

export const link = signal<Link>('connecting');
/** Of the engine that the page came from. */
export const version = signal('');
/** Of one that has taken its place; '' where it is the same. */
export const update = signal('');
/** How often each topic has changed; everything counts as changed after a pause. */
const changes = signal<Readonly<Record<Topic, number>>>({ status: 0, request: 0, memory: 0, library: 0, tasks: 0 });

const RETRY_MS = 700;
const GONE_MS = 30_000;
/** Events that come closer together are one change. */
const GATHER_MS = 200;

let csrf = '';

export class CallError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** @throws CallError with the engine's message; DOMException when `abort` ends it */
export async function call<K extends Name>(name: K, input: Input<K>, abort?: AbortSignal): Promise<Result<K>> {
  const response = await fetch(`/v1/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-comet-csrf': csrf },
    body: JSON.stringify(input),
    ...(abort === undefined ? {} : { signal: abort }),
  }).catch(() => null);
  if (response?.status === 401) link.value = 'expired';
  // Another program on the port, or an engine that ends meanwhile, sends no whole JSON.
  const body = await readJson<{ result: Result<K>; error?: { code: string; message: string } }>(response);
  if (abort?.aborted) throw abort.reason;
  if (body === null) {
    throw new CallError('offline', 'The engine does not answer. What you typed is kept; try again once it is back.');
  }
  if (body.error !== undefined) throw new CallError(body.error.code, body.error.message);
  return body.result;
}

async function readJson<T extends object>(response: Response | null): Promise<T | null> {
  const body: unknown = await response?.json().catch(() => null);
  return typeof body === 'object' ? (body as T | null) : null;
}

let isStopped = false;
/** When the engine was last known to be there. */
let lostMs = Date.now();
let retry: ReturnType<typeof setTimeout> | undefined;
let events: EventSource | undefined;

/** Signs in with the cookie and follows events, again and again while the engine is away. */
export async function connect(): Promise<void> {
  const response = await fetch('/session').catch(() => null);
  if (response?.status === 401 || response?.status === 403) {
    link.value = 'expired';
    return;
  }
  const session = response?.ok ? await readJson<{ csrf: string; version: string }>(response) : null;
  if (session === null) return lose();
  csrf = session.csrf;
  version.value ||= session.version;
  update.value = session.version === version.value ? '' : session.version;
  follow();
}

// Another tab may have signed in meanwhile.
addEventListener('focus', () => link.value === 'expired' && void connect());

addEventListener('visibilitychange', () => {
  if (document.hidden) rest();
  else if (link.value === 'live' && events === undefined) void connect();
});

/** A browser opens six connections to an address: in the background a tab leaves them to the others. */
function rest(): void {
  if (link.value !== 'live') return;
  lostMs = Date.now();
  events?.close();
  events = undefined;
}

/** Live only once it follows events: what is sent before is not heard, such as that the engine was stopped. */
function live(): void {
  const wasAway = untracked(() => link.value !== 'connecting');
  link.value = 'live';
  isStopped = false;
  if (document.hidden) rest();
  if (wasAway) touch(Object.keys(changes.value) as Topic[]);
}

function lose(): void {
  if (link.value === 'live' && events !== undefined) lostMs = Date.now();
  if (isStopped) link.value = 'stopped';
  else if (link.value !== 'expired') link.value = Date.now() - lostMs < GONE_MS ? 'lost' : 'gone';
  events?.close();
  events = undefined;
  clearTimeout(retry);
  retry = setTimeout(() => void connect(), RETRY_MS);
}

const gathered = new Set<Topic>();

function follow(): void {
  events?.close();
  events = new EventSource('/events');
  events.onopen = live;
  events.onerror = lose;
  events.addEventListener('change', ({ data }: MessageEvent<string>) => {
    const { topic } = JSON.parse(data) as { topic: Topic | 'stop' };
    isStopped ||= topic === 'stop';
    if (topic === 'stop') return;
    if (gathered.size === 0) setTimeout(flush, GATHER_MS);
    gathered.add(topic);
  });
}

function flush(): void {
  touch([...gathered]);
  gathered.clear();
}

/** Reads these again, wherever they are shown. */
export function touch(topics: readonly Topic[]): void {
  const next = { ...changes.value };
  for (const topic of topics) next[topic] += 1;
  changes.value = next;
}

export interface Query<T> {
  /** The newest answer; it stays while the next one is read. */
  readonly data: T | undefined;
  /** Of the newest try. */
  readonly error: CallError | undefined;
  /** `data` answers an earlier question. */
  readonly isOld: boolean;
}

type KeyedQuery<T> = Omit<Query<T>, 'isOld'> & { readonly key: string };

/** Asks for something, and asks again when its input or one of the topics changes. Null input: nothing is asked. */
export function useQuery<K extends Name>(name: K, input: Input<K> | null, topics: readonly Topic[]): Query<Result<K>> {
  const key = JSON.stringify(input);
  const [state, setState] = useState<KeyedQuery<Result<K>>>({ key, data: undefined, error: undefined });
  // An effect after the paint would ask a frame later.
  useLayoutEffect(() => {
    if (input === null) return;
    let abort = new AbortController();
    let seen: string | null = null;
    const stop = effect(() => {
      const ticks = topics.map((topic) => changes.value[topic]).join();
      const next = link.value === 'live' ? ticks : null;
      if (next === seen) return;
      seen = next;
      if (next === null) return;
      abort.abort();
      abort = new AbortController();
      const { signal: own } = abort;
      call(name, input, own).then(
        (data) => own.aborted || setState({ key, data, error: undefined }),
        (error: unknown) => {
          if (!own.aborted && error instanceof CallError) setState((last) => ({ ...last, key, error }));
        },
      );
    });
    return () => {
      stop();
      abort.abort();
    };
  }, [name, key]);
  return { ...state, isOld: state.key !== key };
}
