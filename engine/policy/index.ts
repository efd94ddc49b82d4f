import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { CometError, type Problem } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { type Consent, consentOf, type Say, type Scope } from '../../common/policy.ts';
import type { Memory } from '../../memory/index.ts';
import { createProjectOf } from '../../memory/storage/fs/git-project.ts';
import { createIdSetFile } from '../../memory/storage/fs/id-set-file.ts';
import { NO_PAUSES, type Pauses, standing, wasPaused } from './pauses.ts';
import { parsePauses } from './pauses-file.ts';
import { parseProjectFile, projectFilesFor } from './project-file.ts';

/** A change of a project's file is seen at the latest after this; a pause holds from the next request on. */
const FRESH_MS = 1_000;
const DIRECTORIES = 500;
/** What cannot be read may have said so. */
const CLOSED: Say = { mode: 'off', scope: 'session' };

/** What the user allows where: `comet-cc pause`, and the `.comet-cc.json` of a project and of what is above it. */
export interface ConsentBook {
  of(projectDir: string | null): Consent;
  /** The turn with this key is not taken in, now or later. */
  withhold(key: string): void;
  isWithheld(key: string): boolean;
  /** Whether what was said there, then, may be taken in later. */
  letsImport(projectDir: string | null, fromMs: number, toMs: number): boolean;
  pauses(): Pauses;
  problems(): readonly Problem[];
}

export interface ConsentDeps {
  readonly paths: Pick<HomePaths, 'journalDir' | 'pausesFile'>;
  /** Of the configuration; a project can narrow it. */
  readonly scope: Scope;
  readonly now: () => number;
  readonly report: (message: string, error: unknown) => void;
}

export async function openConsent({ paths, scope, now, report }: ConsentDeps): Promise<ConsentBook> {
  const file = createIdSetFile(path.join(paths.journalDir, 'withheld'));
  const withheld = new Set(await file.load());
  const projectOf = createProjectOf(now);
  const problems = new Map<string, Problem>();
  const said = new Map<string, { readonly says: readonly Say[]; readonly atMs: number }>();

  /** Null where there is no such file; `closed` where it cannot be read. */
  function read<T>(name: string, parse: (text: string) => T, closed: T): T | null {
    try {
      // Asked for each request: a look costs a tenth of an error.
      const value = statSync(name, { throwIfNoEntry: false }) ? parse(readFileSync(name, 'utf8')) : null;
      problems.delete(name);
      return value;
    } catch {
      problems.set(name, { file: name, message: 'cannot be read: memory is off where it holds until it is mended' });
      return closed;
    }
  }

  function pauses(): Pauses {
    const closed: Pauses = {
      ...NO_PAUSES,
      everywhere: { mode: 'off', since: new Date(0).toISOString(), until: null },
    };
    return standing(read(paths.pausesFile, parsePauses, closed) ?? NO_PAUSES, now());
  }

  function filesSay(directory: string): readonly Say[] {
    const known = said.get(directory);
    if (known !== undefined && Math.abs(now() - known.atMs) < FRESH_MS) return known.says;
    const found = projectFilesFor(directory).map((name) => read(name, parseProjectFile, CLOSED));
    const says = found.filter((say) => say !== null);
    if (said.size >= DIRECTORIES) said.clear();
    said.set(directory, { says, atMs: now() });
    return says;
  }

  /** A pause now says nothing about what was said before it; a file holds for its project as it is. */
  function filesLet(projectDir: string | null): boolean {
    return projectDir === null || !path.isAbsolute(projectDir) || consentOf(filesSay(projectDir)).captures;
  }

  return {
    of(projectDir) {
      const { everywhere, projects } = pauses();
      const asked = [everywhere, projects[projectOf(projectDir)]].flatMap((pause) => (pause ? [pause] : []));
      return consentOf([
        { mode: 'on', scope },
        ...asked.map(({ mode }): Say => ({ mode, scope: 'all' })),
        ...(projectDir !== null && path.isAbsolute(projectDir) ? filesSay(projectDir) : []),
      ]);
    },
    withhold(key) {
      if (withheld.has(key)) return;
      withheld.add(key);
      file.add([key]).catch((error: unknown) => report('a turn that is not to be taken in was not noted down', error));
    },
    isWithheld: (key) => withheld.has(key),
    letsImport(projectDir, fromMs, toMs) {
      return filesLet(projectDir) && !wasPaused(pauses(), projectOf(projectDir), fromMs, toMs);
    },
    pauses,
    problems: () => [...problems.values()],
  };
}

/** Memory that takes in and recalls what `consent` allows. */
export function consentingMemory(memory: Memory, consent: ConsentBook): Memory {
  function allowed<R extends { readonly projectDir: string }>(request: R): R {
    if (consent.of(request.projectDir).captures) return request;
    throw new CometError('not_allowed', 'memory takes nothing in here: it is paused, or the project says so');
  }

  return {
    ...memory,
    capture(turns) {
      for (const { key, projectDir } of turns) if (!consent.of(projectDir).captures) consent.withhold(key);
      memory.capture(turns.filter(({ key }) => !consent.isWithheld(key)));
    },
    importTurns: (request) =>
      memory.importTurns({
        ...request,
        mayKeep: ({ projectDir, startMs, atMs }) => consent.letsImport(projectDir, startMs, atMs),
      }),
    remember: async (request) => memory.remember(allowed(request)),
    importDocument: async (request) => memory.importDocument(allowed(request)),
    standing: (sessionId, projectDir, scope = consent.of(projectDir).scope) =>
      memory.standing(sessionId, projectDir, scope),
    recall: (request, signal) => memory.recall({ scope: consent.of(request.projectDir).scope, ...request }, signal),
  };
}
