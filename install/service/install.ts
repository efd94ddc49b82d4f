import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { CometError } from '../../common/errors.ts';
import { writeFileAtomic } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { makeFolder, removeMadeFolder } from '../created-dirs.ts';
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
  const installed = (await standing(plan)) !== null;
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
  const before = await standing(plan);
  await makeFolder(paths, path.dirname(plan.file));
  await writeFileAtomic(plan.file, plan.content);
  told(`wrote ${plan.file}`);
  try {
    for (const command of plan.install) await run(command, told);
  } catch (error) {
    if (before === null) await removeFile(paths, plan);
    else await writeFileAtomic(plan.file, before);
    throw error;
  }
}

/**
 * @returns false when nothing was installed
 * @throws CometError as `installService`
 */
export async function uninstallService(paths: HomePaths, plan: ServicePlan, told: Told): Promise<boolean> {
  if ((await standing(plan)) === null) return false;
  await mustAnswer(plan);
  // One that the manager has forgotten already must still be removable.
  for (const command of plan.remove) await run(command, told).catch((error: Error) => told(error.message));
  await removeFile(paths, plan);
  told(`removed ${plan.file}`);
  for (const command of plan.afterwards) await run(command, told);
  return true;
}

async function removeFile(paths: HomePaths, { file }: ServicePlan): Promise<void> {
  await rm(file, { force: true });
  await removeMadeFolder(paths, path.dirname(file));
}

async function mustAnswer(plan: ServicePlan): Promise<void> {
  if (!(await succeeds(plan.probe))) throw new CometError('service_failed', plan.missing);
}

/** What we wrote there before; null when nothing is there. */
async function standing(plan: ServicePlan): Promise<Buffer | null> {
  const found = await readFile(plan.file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw new CometError('unsafe_file', `${plan.file} cannot be read (${error.code})`, { cause: error });
  });
  if (found === null || found.includes(MARK) || found.includes(Buffer.from(MARK, 'utf16le'))) return found;
  throw new CometError('unsafe_file', `${plan.file} was not made by comet-cc, so it is left alone; move it away`);
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
