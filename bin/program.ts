import { Command, CommanderError } from 'commander';
import { CometError, getMessage } from '../common/errors.ts';
import { VERSION } from '../common/paths.ts';
import { type Context, EXIT, getExitCode } from './context.ts';

type Register = (program: Command, context: Context) => void;

/** In the order of `--help`. Each is loaded by itself: most of what a command costs is what is loaded for it. */
const COMMANDS: Readonly<Record<string, () => Promise<Register>>> = {
  run: async () => (await import('./commands/run.ts')).registerRun,
  setup: async () => (await import('./commands/setup.ts')).registerSetup,
  start: async () => (await import('./commands/start.ts')).registerStart,
  stop: async () => (await import('./commands/start.ts')).registerStop,
  restart: async () => (await import('./commands/start.ts')).registerRestart,
  status: async () => (await import('./commands/status.ts')).registerStatus,
  logs: async () => (await import('./commands/log.ts')).registerLogs,
  doctor: async () => (await import('./commands/doctor.ts')).registerDoctor,
  config: async () => (await import('./commands/config.ts')).registerConfig,
  env: async () => (await import('./commands/env.ts')).registerEnv,
  service: async () => (await import('./commands/service.ts')).registerService,
  'install-ca': async () => (await import('./commands/install-ca.ts')).registerInstallCa,
  'uninstall-ca': async () => (await import('./commands/install-ca.ts')).registerUninstallCa,
  uninstall: async () => (await import('./commands/uninstall.ts')).registerUninstall,
  memory: async () => (await import('./commands/memory.ts')).registerMemory,
  project: async () => (await import('./commands/project.ts')).registerProject,
  todo: async () => (await import('./commands/items.ts')).registerTodo,
  decisions: async () => (await import('./commands/items.ts')).registerDecisions,
  task: async () => (await import('./commands/task.ts')).registerTask,
  inbox: async () => (await import('./commands/task.ts')).registerInbox,
  library: async () => (await import('./commands/library.ts')).registerLibrary,
  facts: async () => (await import('./commands/facts.ts')).registerFacts,
  ontology: async () => (await import('./commands/ontology.ts')).registerOntology,
  share: async () => (await import('./commands/share.ts')).registerShare,
  session: async () => (await import('./commands/session.ts')).registerSession,
  ui: async () => (await import('./commands/ui.ts')).registerUi,
  statusline: async () => (await import('./commands/statusline.ts')).registerStatusline,
  editor: async () => (await import('./commands/editor.ts')).registerEditor,
  savings: async () => (await import('./commands/cost.ts')).registerSavings,
  explain: async () => (await import('./commands/explain.ts')).registerExplain,
  pause: async () => (await import('./commands/pause.ts')).registerPause,
  resume: async () => (await import('./commands/pause.ts')).registerResume,
  flush: async () => (await import('./commands/maintenance.ts')).registerFlush,
  dream: async () => (await import('./commands/maintenance.ts')).registerDream,
  mcp: async () => (await import('./commands/mcp.ts')).registerMcp,
  hooks: async () => (await import('./commands/hooks.ts')).registerHooks,
  bench: async () => (await import('./commands/bench.ts')).registerBench,
  demo: async () => (await import('./commands/demo.ts')).registerDemo,
  completion: async () => (await import('./commands/completion.ts')).registerCompletion,
};

/** Runs the command that `argv` names. @returns its exit code */
export async function runProgram(argv: readonly string[], context: Context): Promise<number> {
  try {
    const program = await openProgram(context, argv[2]);
    nameHelp(program, 'comet-cc');
    await program.parseAsync(argv);
    return context.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    context.term.say(`comet-cc: ${getMessage(error)}`);
    for (const why of [await configProblem(error, context), await buildProblem(error, context)]) {
      if (why !== '' && !getMessage(error).includes(why)) context.term.say(`comet-cc: ${why}`);
    }
    return getExitCode(error);
  }
}

/** After a wrong argument each command names its own help. */
function nameHelp(command: Command, name: string): void {
  command.showHelpAfterError(`(${name} --help ${name === 'comet-cc' ? 'lists everything' : 'shows how to use it'})`);
  for (const each of command.commands) nameHelp(each, `${name} ${each.name()}`);
}

/** The one that is named; all of them for help, completion and what is none. */
async function listCommands(name = ''): Promise<Register[]> {
  if (name === '-V' || name === '--version') return [];
  const named = ['completion', 'setup'].includes(name)
    ? []
    : Object.entries(COMMANDS).filter(([each]) => each === name);
  const wanted = named.length > 0 ? named : Object.entries(COMMANDS);
  return await Promise.all(wanted.map(([, load]) => load()));
}

/** A daemon that is not there cannot be started either while the configuration does not validate. */
async function configProblem(error: unknown, context: Context): Promise<string> {
  if (!(error instanceof CometError) || !['daemon_down', 'daemon_unhealthy'].includes(error.code)) return '';
  return await context.config().then(() => '', getMessage);
}

/** Whatever goes wrong between a command and a daemon of different builds may be due to that, but for what was typed. */
async function buildProblem(error: unknown, context: Context): Promise<string> {
  if (error instanceof CometError && ['daemon_down', 'usage', 'ambiguous_id'].includes(error.code)) return '';
  const { guardStatus, otherBuild } = await import('../engine/lifecycle/index.ts');
  const guard = await guardStatus(context.paths.guardSocket).catch(() => null);
  if (guard === null) return '';
  const difference = otherBuild(guard);
  return difference === '' ? '' : `${difference}; comet-cc restart brings both to one`;
}

/** With the command that is named, or every one, as help and completion read it. */
export async function openProgram(context: Context, name?: string): Promise<Command> {
  const program = new Command('comet-cc')
    .description('Gives Claude Code lossless, structured memory through a local proxy.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      getOutHelpWidth: () => Math.min(context.term.width, 100),
    })
    .addHelpText('after', '\nExample:\n  comet-cc run claude');
  for (const register of await listCommands(name)) register(program, context);
  return program;
}
