import { existsSync } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import {
  distrustRoots,
  editedSettings,
  revertSettings,
  thisMachine,
  trustedStores,
  trustStores,
} from '../../certs/index.ts';
import { CometError } from '../../common/errors.ts';
import { homeEntries } from '../../common/paths.ts';
import type { Context } from '../../engine/lifecycle/context.ts';
import { guardStatus } from '../../engine/lifecycle/control.ts';
import { stopDaemon } from '../../engine/lifecycle/daemon.ts';
import { hookedFiles, uninstallHooks } from '../claude-code/hooks.ts';
import { userSettingsFile } from '../claude-code/settings-file.ts';
import { completionFiles, removeCompletion } from '../completion/install.ts';
import { editorStates, revertEditor } from '../editors/install.ts';
import { serviceState, uninstallService } from '../service/install.ts';
import { plannedService } from '../service/planned.ts';
import type { Step } from './step.ts';

export interface UninstallOptions {
  readonly keepMemory: boolean;
  /** Hears what is done. */
  readonly told: (line: string) => void;
}

/** What `--keep-memory` keeps: the truth, the raw turns, and their schema. The rest is made from them, or of no use. */
const MEMORY = ['memory', 'journal', 'schema.json'];

/** In the order in which they have to go: the notes of what was changed elsewhere lie in the home, which goes last. */
export function uninstallSteps(context: Context, { keepMemory, told }: UninstallOptions): Step[] {
  const { env, paths } = context;
  return [
    {
      id: 'service',
      async present() {
        const plan = await plannedService(context);
        return plan !== null && (await serviceState(plan)).installed ? [plan.file] : [];
      },
      async undo() {
        const plan = await plannedService(context);
        if (plan !== null) await uninstallService(paths, plan, told);
      },
    },
    {
      id: 'hooks',
      present: async () => (await hookedFiles(paths, [userSettingsFile(env)])).map((file) => `our hooks in ${file}`),
      async undo() {
        await uninstallHooks(paths, [userSettingsFile(env)]);
      },
    },
    {
      id: 'settings',
      async present() {
        const file = await editedSettings(paths);
        return file === null ? [] : [`our variables in ${file}`];
      },
      async undo() {
        await revertSettings(paths);
      },
    },
    {
      id: 'editors',
      present: async () => (await editorStates(paths, null)).map(({ file }) => `our variables in ${file}`),
      async undo() {
        for (const { editor } of await editorStates(paths, null)) await revertEditor(paths, editor);
      },
    },
    {
      id: 'system',
      present: async () => (await trustedStores(paths)).map((store) => `our root in the ${store} store`),
      async undo() {
        const { unreachable } = await distrustRoots(paths, trustStores(thisMachine(env, paths.runDir)));
        if (unreachable.length === 0) return;
        const stores = unreachable.join(', ');
        throw new CometError(
          'trust_failed',
          `${stores}: cannot be looked into now; remove our root there, then repeat`,
        );
      },
    },
    {
      id: 'completion',
      present: () => completionFiles(env),
      async undo() {
        for (const file of await completionFiles(env)) await removeCompletion(context, file);
      },
    },
    {
      id: 'daemon',
      present: async () => ((await guardStatus(paths.guardSocket)) === null ? [] : ['the running daemon']),
      async undo() {
        await stopDaemon(paths);
      },
    },
    {
      id: 'files',
      present: async () => ours().filter((file) => existsSync(file)),
      async undo() {
        for (const file of ours()) await rm(file, { recursive: true, force: true });
        if (!keepMemory && existsSync(paths.home) && (await readdir(paths.home)).length === 0) await rmdir(paths.home);
      },
    },
  ];

  function ours(): string[] {
    const kept = keepMemory ? MEMORY : [];
    return homeEntries(paths)
      .filter((name) => !kept.includes(name))
      .map((name) => path.join(paths.home, name));
  }
}
