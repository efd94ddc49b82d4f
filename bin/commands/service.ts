import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { guardStatus, rememberProxy } from '../../engine/lifecycle/index.ts';
import type { ServicePlan } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';

export function registerService(program: Command, context: Context): void {
  const { term } = context;
  const example = 'comet-cc service install';
  const service = addCommand(program, 'service', 'start the daemon at login and after a crash', example);

  const description = 'write a file for systemd or launchd, and start the daemon with it';
  addCommand(service, 'install', description, example).action(async () => {
    const { installService } = await import('../../install/service/index.ts');
    const plan = await planned(context);
    const running = await guardStatus(context.paths.guardSocket);
    await installService(context.paths, plan, term.out, running !== null);
    await rememberProxy(context.paths, context.env);
    if (running === null || running.pass_through) return term.out(`${plan.manager} starts comet-cc from now on`);
    term.say('comet-cc is already running; the service starts it from the next login on');
  });

  const removing = 'stop the service and remove its file';
  addCommand(service, 'uninstall', removing, 'comet-cc service uninstall').action(async () => {
    const { uninstallService } = await import('../../install/service/index.ts');
    if (!(await uninstallService(context.paths, await planned(context), term.out))) term.out('nothing was installed');
  });

  const status = addCommand(service, 'status', 'show whether it is installed and running', 'comet-cc service status');
  status.jsonAction('document', async (flags: CommandFlags) => {
    const { inspectService } = await import('../../install/service/index.ts');
    const state = await inspectService(await planned(context));
    term.print(flags, state, () => [
      `manager    ${state.manager}${state.missing === '' ? '' : ` (${state.missing})`}`,
      `file       ${state.installed ? state.file : 'not installed: comet-cc service install'}`,
      ...(state.installed ? [`service    ${state.running ? 'runs' : 'does not run'}`] : []),
    ]);
  });
}

/** @throws CometError `service_failed` where there is no manager that we know */
async function planned(context: Context): Promise<ServicePlan> {
  const { currentServicePlan } = await import('../../install/service/index.ts');
  const plan = await currentServicePlan(context.env, context.paths.home);
  if (plan !== null) return plan;
  throw new CometError('service_failed', `no service manager is known for ${process.platform}; use comet-cc start`);
}
