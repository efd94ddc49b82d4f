import { type Command, Option } from 'commander';
import { CometError } from '../../common/errors.ts';
import {
  clientEnvironment,
  getShell,
  guardStatus,
  prepareAccess,
  rememberProxy,
  SHELLS,
  type Shell,
  shellLines,
} from '../../engine/lifecycle/index.ts';
import { addCommand, type Context } from '../context.ts';

export function registerEnv(program: Command, context: Context): void {
  const description = "the environment for your own shell or editor; it holds this install's proxy token";
  addCommand(program, 'env', description, 'eval "$(comet-cc env)"\ncomet-cc env --shell fish | source')
    .addOption(new Option('--shell <name>', 'syntax to print (default: that of $SHELL)').choices(SHELLS))
    .action(async (flags: { shell?: Shell }) => {
      const shell = flags.shell ?? getShell(context.env);
      const guard = await guardStatus(context.paths.guardSocket);
      const port = guard?.port ?? (await context.config()).port;
      if (port === 0) throw new CometError('daemon_down', 'the port is known once the daemon runs: comet-cc start');
      await rememberProxy(context.paths, context.env);
      const access = { ...(await prepareAccess(context)), port };
      context.term.out(shellLines(clientEnvironment(access, context.env), shell));
      if (guard === null || guard.pass_through)
        context.term.say('comet-cc is not running; start it with: comet-cc start');
    });
}
