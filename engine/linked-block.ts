import { getReason, type Problem } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import type { HomePaths } from '../common/paths.ts';
import { readLinkedBlock, refreshLinkedBlock } from '../install/claude-code/index.ts';
import type { Library } from '../memory/index.ts';

/** Edits of pages and tasks by hand are noticed after this. */
const EVERY_MS = 20_000;

interface Parts {
  readonly paths: HomePaths;
  readonly library: Pick<Library, 'linkedBlock'>;
  readonly log: Log;
}

export type LinkedBlock = ReturnType<typeof createLinkedBlock>;

/** Keeps the library's part in the user's memory files as the library is. */
export function createLinkedBlock({ paths, library, log }: Parts) {
  let problems: readonly Problem[] = [];
  let failure = '';
  let isStale = false;
  let isRunning = false;

  async function refresh(): Promise<void> {
    isRunning = true;
    while (isStale) {
      isStale = false;
      await refreshLinkedBlock(paths, () => library.linkedBlock()).then(
        (found) => {
          problems = found;
          failure = '';
        },
        (error: unknown) => {
          if (failure !== getReason(error)) log.warn('the linked part of the library is not refreshed', { error });
          failure = getReason(error);
        },
      );
    }
    isRunning = false;
  }

  /** Looks whether it is up to date, without being waited for. */
  function refreshSoon(): void {
    isStale = true;
    if (!isRunning) void refresh();
  }

  refreshSoon();
  const timer = setInterval(refreshSoon, EVERY_MS).unref();
  return {
    refreshSoon,
    /** What it says now; '' where nothing is linked. */
    text: (): Promise<string> => readLinkedBlock(paths).catch(() => ''),
    problems: (): readonly Problem[] => problems,
    close: async (): Promise<void> => clearInterval(timer),
  };
}
