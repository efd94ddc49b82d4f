import type { EngineServices } from '../service.ts';
import { followFolders } from './watch-files.ts';

/** What a page reads again; `stop`: no engine follows this one. */
export type Topic = 'status' | 'request' | 'memory' | 'library' | 'tasks' | 'stop';

type State = Readonly<Partial<Record<Topic, string>>>;
type Listener = (topics: readonly Topic[]) => void;

/** Each topic is reported at most four times a second. */
const TICK_MS = 250;

export type Watch = ReturnType<typeof createWatch>;

/**
 * Compares what the engine counts, only while a page follows: nothing is added to the path of a request.
 * @param folders  of files that people edit by hand
 */
export function createWatch(services: () => EngineServices, folders: readonly string[] = []) {
  const listeners = new Set<Listener>();
  const touched = new Set<Topic>();
  let seen: State = {};
  let end = (): void => {};

  function tick(): void {
    const now = getState(services());
    const topics = Object.keys(now) as Topic[];
    const changed = new Set([...touched, ...topics.filter((topic) => now[topic] !== seen[topic])]);
    if (changed.has('memory')) changed.add('library');
    touched.clear();
    seen = now;
    if (changed.size > 0) for (const listener of listeners) listener([...changed]);
  }

  function touch(topics: readonly Topic[]): void {
    if (listeners.size > 0) for (const topic of topics) touched.add(topic);
  }

  return {
    /** @returns ends it */
    follow(listener: Listener): () => void {
      if (listeners.size === 0) {
        seen = getState(services());
        const timer = setInterval(tick, TICK_MS).unref();
        const unfollow = followFolders(folders, () => touch(['library', 'tasks']));
        end = () => {
          clearInterval(timer);
          unfollow();
        };
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) end();
      };
    },
    isFollowed: (): boolean => listeners.size > 0,
    /** An operation changed what no count shows. */
    touch,
    sayStopped(): boolean {
      for (const listener of listeners) listener(['stop']);
      return listeners.size > 0;
    },
  };
}

/** Values that differ once the topic has changed. */
function getState({ memory, requests, activity, ledger, policy, problems, removals, tasks }: EngineServices): State {
  // Nothing is counted while an answer streams; it is read again each second.
  const second = activity().answering > 0 ? Math.floor(Date.now() / 1_000) : 0;
  const { queue, nodes, ...status } = memory.maintenance.status();
  return {
    status: JSON.stringify([status, policy.pauses(), problems()]),
    request: JSON.stringify([requests(), activity(), second, ledger.days().at(-1)]),
    memory: `${JSON.stringify([queue, nodes, removals.hidden().size])} ${memory.maintenance.revision()}`,
    tasks: JSON.stringify(tasks.due()),
  };
}
