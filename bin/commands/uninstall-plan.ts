import { readdir, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { distrustRoots, listTrustedStores, trustStores } from '../../certs/index.ts';
import { CometError } from '../../common/errors.ts';
import { TEMPORARY_NAME } from '../../common/files.ts';
import { homeEntries, ONTOLOGY_SCHEMA } from '../../common/paths.ts';
import { guardStatus, stopDaemon } from '../../engine/lifecycle/index.ts';
import {
  findEntries,
  findRegistrations,
  removeCreatedDirs,
  removeRegistrations,
  uninstallEntries,
} from '../../install/claude-code/index.ts';
import { findCompletionFiles, removeCompletion } from '../../install/completion/index.ts';
import { inspectEditors } from '../../install/editors/index.ts';
import { userMemoryFile, userSettingsFile } from '../../install/index.ts';
import { currentServicePlan, inspectService, uninstallService } from '../../install/service/index.ts';
import type { Context } from '../context.ts';
import { ownVariables } from './edit-settings.ts';

/** One kind of change that comet-cc may have left on a machine. */
interface UninstallStep {
  readonly id: string;
  /** What is present now, one line each. */
  present(): Promise<readonly string[]>;
  /** Removes it; what cannot be removed stays `present`. */
  undo(): Promise<unknown>;
}

interface UninstallOptions {
  readonly keepMemory: boolean;
  readonly log: (line: string) => void;
}

/** What `--keep-memory` keeps: nodes, turns, their schema, who shares them and by which key, the library. */
const MEMORY = 'memory journal library share schema.json projects.json ontology.json ontologies.json'.split(' ');

/** In order of removal: the home goes last because it records the changes made elsewhere. */
export function uninstallSteps(context: Context, { keepMemory, log }: UninstallOptions): UninstallStep[] {
  const { env, paths } = context;
  return [
    {
      id: 'service',
      async present() {
        const plan = await currentServicePlan(env, paths.home);
        return plan !== null && (await inspectService(plan)).installed ? [plan.file] : [];
      },
      async undo() {
        const plan = await currentServicePlan(env, paths.home);
        if (plan !== null) await uninstallService(paths, plan, log);
      },
    },
    ...(Object.keys(ENTRIES) as (keyof typeof ENTRIES)[]).map((id) => entries(context, id)),
    {
      id: 'claude-code',
      present: async () => (await findRegistrations(env)).map(({ what, file }) => `${what} of comet-cc in ${file}`),
      undo: () => removeRegistrations(env),
    },
    {
      id: 'editors',
      present: async () => (await inspectEditors(paths, null)).map(({ file }) => `variables of comet-cc in ${file}`),
      async undo() {
        for (const { editor } of await inspectEditors(paths, null)) await uninstallEntries(paths, editor, []);
      },
    },
    {
      id: 'system',
      present: async () => (await listTrustedStores(paths)).map((store) => `root of comet-cc in the ${store} store`),
      async undo() {
        const { unreachable } = await distrustRoots(paths, trustStores(env, paths.runDir));
        if (unreachable.length === 0) return;
        const next = 'remove the comet-cc root there, then run this again';
        throw new CometError('trust_failed', `${unreachable.join(', ')}: cannot be read now; ${next}`);
      },
    },
    {
      id: 'completion',
      present: () => findCompletionFiles(env),
      undo: () => removeCompletion(paths, env),
    },
    {
      id: 'daemon',
      present: async () => ((await guardStatus(paths.guardSocket)) === null ? [] : ['the running daemon']),
      // Open sessions keep the port, which closes after the last of them.
      undo: () => stopDaemon(paths, { keepsPort: true }),
    },
    {
      id: 'files',
      present: homeFiles,
      async undo() {
        await removeCreatedDirs(paths);
        for (const file of await homeFiles()) await rm(file, { recursive: true, force: true });
        // Only an empty folder goes: a link to a home elsewhere is the user's.
        if (!keepMemory) await rmdir(paths.home).catch(() => undefined);
      },
    },
  ];

  async function homeFiles(): Promise<string[]> {
    const kept = keepMemory ? [...MEMORY, ONTOLOGY_SCHEMA] : [];
    const ours = homeEntries(paths).filter((name) => !kept.includes(name));
    const names = await readdir(paths.home).catch(() => []);
    const found = names.filter((name) => ours.includes(name.replace(TEMPORARY_NAME, '')));
    return found.map((name) => path.join(paths.home, name));
  }
}

const ENTRIES = {
  ...{ hooks: 'hooks', statusline: 'status line', plugin: 'marketplace and plugin', library: 'library' },
  settings: 'variables',
};

/** Entries of Claude Code's settings, or of what it reads in every project. */
function entries(context: Context, id: keyof typeof ENTRIES): UninstallStep {
  const { env, paths } = context;
  const name = id === 'settings' ? 'env' : id;
  const files = [id === 'library' ? userMemoryFile(env) : userSettingsFile(env)];
  return {
    id,
    async present() {
      const found = await findEntries(paths, name, files, await ownVariables(context));
      return found.map((file) => `${ENTRIES[id]} of comet-cc in ${file}`);
    },
    undo: async () => uninstallEntries(paths, name, files, await ownVariables(context)),
  };
}
