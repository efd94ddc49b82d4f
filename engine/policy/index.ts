import path from 'node:path';
import { z } from 'zod';
import type { Problem } from '../../common/errors.ts';
import { readSmallFile } from '../../common/files.ts';
import { LruMap } from '../../common/map.ts';
import { ancestors, type HomePaths } from '../../common/paths.ts';
import { effectivePolicy, MODES, type PolicyRule, SCOPES, type Scope } from '../../common/policy.ts';
import { jsonOf, sha256 } from '../../common/text.ts';
import { createIdSetFile, createProjectOf, openJoinedFolders } from '../../memory/index.ts';
import { activePauses, allPaused, NO_PAUSES, type Pauses, parsePauses, wasPaused } from './pause.ts';

export { createPauseSwitch } from './pause.ts';
export { allowAgents, projectAgents } from './subagents.ts';

/** The longest that a change of a project's file goes unseen; a pause holds from the next request on. */
const FRESH_MS = 1_000;
const DIRECTORIES = 500;
/** A file that cannot be read may turn memory off. */
const CLOSED: FileRule = { mode: 'off', scope: 'session', share: false };

const PROJECT_FILE = '.comet-cc.json';

/** A project's file can only restrict. */
const projectFile = z
  .strictObject({
    memory: z.enum(MODES).default('on'),
    scope: z.enum(SCOPES).default('all'),
    /** False: no memory of it leaves the machine. */
    share: z.boolean().default(true),
  })
  .transform(({ memory: mode, ...rule }) => ({ mode, ...rule }));
type FileRule = Readonly<z.infer<typeof projectFile>>;

/** What the user allows where: `comet-cc pause`, and the `.comet-cc.json` of a project and of its parent folders. */
export type Policy = Awaited<ReturnType<typeof openPolicy>>;

interface PolicyOptions {
  readonly paths: Pick<HomePaths, 'journalDir' | 'pausesFile' | 'projectsFile'>;
  /** From the configuration; a project can narrow it. */
  readonly scope: Scope;
  readonly now: () => number;
  readonly report: (message: string, error: unknown) => void;
}

export async function openPolicy({ paths, scope, now, report }: PolicyOptions) {
  const file = createIdSetFile(path.join(paths.journalDir, 'withheld'));
  const withheld = new Set(await file.load());
  const joined = openJoinedFolders(paths.projectsFile);
  const getProject = createProjectOf(now, joined);
  const getRemoteProject = createProjectOf(now);
  /** A pause of the remote's project also holds in a folder that did not join it. */
  const getKeys = (projectDir: string | null): string[] => [
    ...new Set([getProject(projectDir), getRemoteProject(projectDir)]),
  ];
  const problems = new Map<string, Problem>();
  const fileRules = new LruMap<string, { readonly rules: readonly FileRule[]; readonly atMs: number }>(DIRECTORIES);

  /** Null where there is no such file; `closed` where it cannot be read. */
  function readPolicyFile<T>(name: string, parse: (text: string) => T, closed: T): T | null {
    try {
      const text = readSmallFile(name);
      const value = text === null ? null : parse(text);
      problems.delete(name);
      return value;
    } catch {
      problems.set(name, { file: name, message: 'cannot be read: memory is off where it applies until it is fixed' });
      return closed;
    }
  }

  function pauses(): Pauses {
    const closed = allPaused(new Date(0).toISOString());
    return activePauses(readPolicyFile(paths.pausesFile, parsePauses, closed) ?? NO_PAUSES, now());
  }

  function rulesOfFiles(directory: string | null): readonly FileRule[] {
    if (directory === null || !path.isAbsolute(directory)) return [];
    const cachedRules = fileRules.get(directory);
    if (cachedRules !== undefined && Math.abs(now() - cachedRules.atMs) < FRESH_MS) return cachedRules.rules;
    const parse = (text: string): FileRule => projectFile.parse(jsonOf(text));
    // Files that may apply to it: in it, and in every directory above.
    const files = ancestors(path.resolve(directory)).map((at) => path.join(at, PROJECT_FILE));
    const rules = files.map((name) => readPolicyFile(name, parse, CLOSED)).filter((rule) => rule !== null);
    fileRules.set(directory, { rules, atMs: now() });
    return rules;
  }

  return {
    of(projectDir: string | null) {
      const { everywhere, projects } = pauses();
      const own = getKeys(projectDir).map((key) => projects[key]);
      const active = [everywhere, ...own].flatMap((pause) => (pause ? [pause] : []));
      return effectivePolicy([
        { mode: 'on', scope },
        ...active.map(({ mode }): PolicyRule => ({ mode, scope: 'all' })),
        ...rulesOfFiles(projectDir),
      ]);
    },
    /** The turn is never captured; its key changes with the form of its history, its prompt does not. */
    withhold(key: string, sessionId: string, prompt: string): void {
      const marks = [key, getMark(sessionId, ''), getMark(sessionId, prompt)].filter((mark) => !withheld.has(mark));
      if (marks.length === 0) return;
      for (const mark of marks) withheld.add(mark);
      file.add(marks).catch((error: unknown) => report('a withheld turn could not be recorded', error));
    },
    isWithheld: (key: string): boolean => withheld.has(key),
    /** Whether a turn of the session with this prompt was withheld; any turn, where it is ''. */
    hasWithheld: (sessionId: string, prompt: string): boolean => withheld.has(getMark(sessionId, prompt)),
    /** Whether a turn may be imported later: a pause concerns no earlier turns, a file all turns of its project. */
    allowsImport(projectDir: string | null, fromMs: number, toMs: number): boolean {
      const isPaused = getKeys(projectDir).some((key) => wasPaused(pauses(), key, fromMs, toMs));
      return !isPaused && effectivePolicy(rulesOfFiles(projectDir)).captures;
    },
    /** Whether a folder of the project, or one above it, keeps its memory on this machine. */
    keepsHere(project: string): boolean {
      const workingTree = (gitDir: string): string => gitDir.replace(/[\\/]\.git$/, '');
      const folders = path.isAbsolute(project) ? [project] : (joined.all()[project] ?? []).map(workingTree);
      return folders.some((folder) => rulesOfFiles(folder).some(({ share }) => !share));
    },
    pauses,
    problems: (): readonly Problem[] => [...problems.values()],
  };
}

const getMark = (sessionId: string, prompt: string): string => sha256(`${sessionId}\n${prompt}`);
