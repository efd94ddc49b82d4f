import { type Command, Option } from 'commander';
import { CometError } from '../../common/errors.ts';
import {
  clientEnvironment,
  guardStatus,
  prepareAccess,
  rememberProxy,
  SHELLS,
  type Shell,
  shellLines,
  shellOf,
} from '../../engine/lifecycle/index.ts';
import type { Context } from '../context.ts';

export function registerEnv(program: Command, context: Context): void {
  program
    .command('env')
    .description("the environment for your own shell or editor; it holds this install's proxy token")
    .addOption(new Option('--shell <name>', 'syntax to print (default: that of $SHELL)').choices(SHELLS))
    .addHelpText('after', '\nExamples:\n  eval "$(comet-cc env)"\n  comet-cc env --shell fish | source')
    .action(async (flags: { shell?: Shell }) => {
      const guard = await guardStatus(context.paths.guardSocket);
      const port = guard?.port ?? (await context.config()).port;
      if (port === 0) throw new CometError('daemon_down', 'the port is known once the daemon runs: comet-cc start');
      await rememberProxy(context.paths, context.env);
      const access = { ...(await prepareAccess(context)), port };
      const shell = flags.shell ?? shellOf(context.env);
      context.term.out(shellLines(clientEnvironment(access, context.env), shell));
      if (guard === null) context.term.say('comet-cc is not running; start it with: comet-cc start');
    });
}
