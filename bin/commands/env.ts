import { type Command, Option } from 'commander';
import { bundleFile, userCaFile } from '../../certs/index.ts';
import { CometError } from '../../common/errors.ts';
import {
  clientEnvironment,
  getShell,
  guardStatus,
  isOurProxy,
  PROXY_NAMES,
  prepareAccess,
  remembered,
  rememberProxy,
  SHELLS,
  type Shell,
  shellLines,
  undoneEnvironment,
  withoutOurs,
} from '../../engine/lifecycle/index.ts';
import { addCommand, type Context } from '../context.ts';

export function registerEnv(program: Command, context: Context): void {
  const description = "the environment for your own shell or editor; it holds this install's proxy token";
  const examples = 'eval "$(comet-cc env)"\ncomet-cc env --shell fish | source\neval "$(comet-cc env --unset)"';
  addCommand(program, 'env', description, examples)
    .addOption(new Option('--shell <name>', 'syntax to print (default: that of $SHELL)').choices(SHELLS))
    .option('--unset', 'print what undoes it, with the values you had before')
    .action(async (flags: { shell?: Shell; unset?: true }) => {
      const shell = flags.shell ?? getShell(context.env);
      if (flags.unset) return context.term.out(shellLines(await undone(context), shell));
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

/** Needs neither a daemon nor a home. */
async function undone({ env, paths }: Context): Promise<Record<string, string | null>> {
  const { url } = await remembered(paths);
  const bundle = bundleFile(paths.certsDir);
  const clean = withoutOurs(env, bundle, await userCaFile(paths));
  const proxies = PROXY_NAMES.filter((name) => url !== '' && isOurProxy(env[name])).map((name) => [name, url]);
  return undoneEnvironment(env, { ...clean, ...Object.fromEntries(proxies) });
}
