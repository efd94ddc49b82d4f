import { realpath } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Context } from '../../engine/lifecycle/context.ts';
import { planService, type ServicePlan } from './plan.ts';

/** The service of this user, machine and home; null where no manager is known. */
export async function plannedService({ env, paths }: Pick<Context, 'env' | 'paths'>): Promise<ServicePlan | null> {
  const userHome = os.homedir();
  return planService({
    platform: process.platform,
    node: process.execPath,
    script: await realpath(process.argv[1] as string),
    home: paths.home,
    userHome,
    configHome: env['XDG_CONFIG_HOME'] || path.join(userHome, '.config'),
    uid: process.getuid?.() ?? -1,
    searchPath: env['PATH'] ?? '',
  });
}
