import { CometError } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { runCommand } from '../../common/run-process.ts';
import { readOwnFile, removeOwnFile, writeOwnFile } from '../edit-file.ts';
import type { CommandLine, ServicePlan } from './plan.ts';
import { MARK } from './render.ts';

export { currentServicePlan } from './plan.ts';

const COMMAND_MS = 60_000;

/** Called with each action. */
type Log = (line: string) => void;

export interface ServiceState {
  readonly manager: string;
  readonly file: string;
  readonly installed: boolean;
  readonly running: boolean;
  /** What this machine lacks; '' when nothing. */
  readonly missing: string;
}

export async function inspectService(plan: ServicePlan): Promise<ServiceState> {
  const { manager, file } = plan;
  const missing = (await succeeds(plan.probe)) ? '' : plan.missing;
  const installed = (await readOwnFile(file, MARK)) !== null;
  const running = installed && missing === '' && (await succeeds(plan.running));
  return { manager, file, installed, running, missing };
}

/**
 * Writes the service file and registers it with the manager; restores the former state when that fails.
 *
 * @throws CometError `service_failed`, `unsafe_file` where the user has a file of that name
 */
export async function installService(paths: HomePaths, plan: ServicePlan, log: Log): Promise<void> {
  await assertManager(plan);
  const { file } = plan;
  const before = await readOwnFile(file, MARK);
  await writeOwnFile(paths, { file, content: plan.content, mark: MARK });
  log(`wrote ${file}`);
  try {
    for (const command of plan.install) await run(command, log);
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
export async function uninstallService(paths: HomePaths, plan: ServicePlan, log: Log): Promise<boolean> {
  if ((await readOwnFile(plan.file, MARK)) === null) return false;
  await assertManager(plan);
  // A service that the manager no longer knows must still be removable.
  for (const command of plan.remove) await run(command, log).catch((error: Error) => log(error.message));
  await removeOwnFile(paths, plan.file);
  log(`removed ${plan.file}`);
  for (const command of plan.afterwards) await run(command, log);
  return true;
}

async function assertManager(plan: ServicePlan): Promise<void> {
  if (!(await succeeds(plan.probe))) throw new CometError('service_failed', plan.missing);
}

async function run(command: CommandLine, log: Log): Promise<void> {
  log(`$ ${command.join(' ')}`);
  await runCommand(command, { code: 'service_failed', timeoutMs: COMMAND_MS });
}

async function succeeds(command: CommandLine): Promise<boolean> {
  return run(command, () => {}).then(
    () => true,
    () => false,
  );
}
