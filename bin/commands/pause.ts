import type { Command } from 'commander';
import { resolveDirectory } from '../../common/paths.ts';
import { addCommand, type Context } from '../context.ts';

interface Flags {
  readonly project?: string;
  readonly private?: boolean;
  readonly for?: string;
  readonly json?: boolean;
}

export function registerPause(program: Command, context: Context): void {
  program
    .command('pause')
    .description('stop capture and recall until resume; what is said meanwhile is never captured')
    .option('--project <dir>', 'only in the project of this directory')
    .option('--private', 'stop capture only; recall continues')
    .option('--for <time>', 'resume automatically after 30m, 2h, 1d')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExamples:\n  comet-cc pause --for 2h\n  comet-cc pause --private --project .')
    .action(async (flags: Flags) => {
      const { pauseLines } = await import('../../engine/api/index.ts');
      const { paused, readPauses, writePauses } = await import('../../engine/policy/index.ts');
      const { parseSpan } = await import('../terminal/format.ts');
      const { paths, term } = context;
      const now = Date.now();
      const until = flags.for === undefined ? null : new Date(now + parseSpan(flags.for, '--for')).toISOString();
      const request = { mode: flags.private ? 'private' : 'off', since: new Date(now).toISOString(), until } as const;
      const project = flags.project === undefined ? null : await getProjectAt(flags.project, paths);
      const wanted = paused(await readPauses(paths.pausesFile, now), project, request);
      await writePauses(paths.pausesFile, wanted);
      term.print(flags, wanted, () => pauseLines(wanted));
    });
}

/** The project key of a directory given on the command line. */
async function getProjectAt(directory: string, { projectsFile }: Context['paths']): Promise<string> {
  const { createProjectOf, openJoinedFolders } = await import('../../memory/index.ts');
  return createProjectOf(Date.now, openJoinedFolders(projectsFile))(resolveDirectory(directory));
}

export function registerResume(program: Command, context: Context): void {
  addCommand(program, 'resume', 'end every pause, or that of one project', 'comet-cc resume')
    .option('--project <dir>', 'only the pause of the project of this directory')
    .option('--json', 'print one JSON document')
    .action(async (flags: { project?: string; json?: boolean }) => {
      const { pauseLines } = await import('../../engine/api/index.ts');
      const { NO_PAUSES, readPauses, resumed, writePauses } = await import('../../engine/policy/index.ts');
      const { paths, term } = context;
      // A damaged pause file pauses everything; resuming repairs it.
      const now = Date.now();
      const held = await readPauses(paths.pausesFile, now).catch(() => NO_PAUSES);
      const left = resumed(
        held,
        flags.project === undefined ? null : await getProjectAt(flags.project, context.paths),
        now,
      );
      await writePauses(paths.pausesFile, left);
      const lines = pauseLines(left);
      const none = ['memory is on, unless a .comet-cc.json says otherwise'];
      term.print(flags, left, () => (lines.length === 0 ? none : lines));
    });
}
