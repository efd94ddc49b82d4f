import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CometError } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { readOwnFile, removeOwnFile, writeOwnFile } from '../edit-file.ts';
import type { CommandLine, ServicePlan } from './plan.ts';
import { MARK } from './render.ts';

const COMMAND_MS = 60_000;

/** Hears of each command before it is run. */
export type Told = (line: string) => void;

export interface ServiceState {
  readonly manager: string;
  readonly file: string;
  readonly installed: boolean;
  readonly running: boolean;
  /** What is missing on this machine, in words; '' when nothing is. */
  readonly missing: string;
}

export async function serviceState(plan: ServicePlan): Promise<ServiceState> {
  const { manager, file } = plan;
  const missing = (await succeeds(plan.probe)) ? '' : plan.missing;
  const installed = (await readOwnFile(file, MARK)) !== null;
  const running = installed && missing === '' && (await succeeds(plan.running));
  return { manager, file, installed, running, missing };
}

/**
 * Writes the one file and has the manager take it up; nothing stays when that fails.
 *
 * @throws CometError `service_failed`, `unsafe_file` when a stranger's file stands there
 */
export async function installService(paths: HomePaths, plan: ServicePlan, told: Told): Promise<void> {
  await mustAnswer(plan);
  const { file } = plan;
  const before = await readOwnFile(file, MARK);
  await writeOwnFile(paths, { file, content: plan.content, mark: MARK });
  told(`wrote ${file}`);
  try {
    for (const command of plan.install) await run(command, told);
  } catch (error) {
    if (before === null) await removeOwnFile(paths, file);
    else await writeOwnFile(paths, { file, content: before, mark: MARK });
    throw error;
  }
}

/**
 * @returns false when nothing was installed
 * @throws CometError as `installService`
 */
export async function uninstallService(paths: HomePaths, plan: ServicePlan, told: Told): Promise<boolean> {
  if ((await readOwnFile(plan.file, MARK)) === null) return false;
  await mustAnswer(plan);
  // One that the manager has forgotten already must still be removable.
  for (const command of plan.remove) await run(command, told).catch((error: Error) => told(error.message));
  await removeOwnFile(paths, plan.file);
  told(`removed ${plan.file}`);
  for (const command of plan.afterwards) await run(command, told);
  return true;
}

async function mustAnswer(plan: ServicePlan): Promise<void> {
  if (!(await succeeds(plan.probe))) throw new CometError('service_failed', plan.missing);
}

async function run([program, ...args]: CommandLine, told: Told): Promise<void> {
  const line = [program, ...args].join(' ');
  told(`$ ${line}`);
  try {
    await promisify(execFile)(program, args, { timeout: COMMAND_MS });
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { readonly stderr?: string };
    throw new CometError(
      'service_failed',
      `${line} failed (${code ?? 'no code'}) ${stderr.replace(/\s+/g, ' ')}`.trim(),
      {
        cause: error,
      },
    );
  }
}

async function succeeds(command: CommandLine): Promise<boolean> {
  return await run(command, () => {}).then(
    () => true,
    () => false,
  );
}
