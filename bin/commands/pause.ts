import type { Command } from 'commander';
import { addCommand, type CommandFlags, type Context, noteFolder, projectKey } from '../context.ts';

type Flags = CommandFlags<'private', 'project' | 'for'>;

export function registerPause(program: Command, context: Context): void {
  const description = 'stop capture and recall until resume; what is said meanwhile is never captured';
  addCommand(program, 'pause', description, 'comet-cc pause --for 2h\ncomet-cc pause --private --project .')
    .option('--project <dir>', 'only in the project of this directory')
    .option('--private', 'stop capture only; recall continues')
    .option('--for <time>', 'resume automatically after 30m, 2h, 1d')
    .jsonAction('document', async (flags: Flags) => {
      const { pause, pauseLines } = await openSwitch(context);
      const { parseSpan } = await import('../terminal/format.ts');
      const untilMs = flags.for === undefined ? null : Date.now() + parseSpan(flags.for, '--for');
      const project = flags.project === undefined ? null : await projectKey(context, flags.project);
      const wanted = await pause(flags.private ? 'private' : 'off', project, untilMs);
      context.term.print(flags, wanted, () => pauseLines(wanted));
      if (flags.project !== undefined) noteFolder(context, flags.project);
    });
}

async function openSwitch({ paths }: Context) {
  const { pauseLines } = await import('../../engine/api/index.ts');
  const { createPauseSwitch } = await import('../../engine/policy/index.ts');
  return { pauseLines, ...createPauseSwitch(paths.pausesFile, Date.now) };
}

export function registerResume(program: Command, context: Context): void {
  addCommand(program, 'resume', 'end every pause, or that of one project', 'comet-cc resume')
    .option('--project <dir>', 'only the pause of the project of this directory')
    .jsonAction('document', async (flags: Flags) => {
      const { resume, pauseLines } = await openSwitch(context);
      const left = await resume(flags.project === undefined ? null : await projectKey(context, flags.project));
      const lines = pauseLines(left);
      const none = ['memory is on, unless a .comet-cc.json says otherwise'];
      context.term.print(flags, left, () => (lines.length === 0 ? none : lines));
    });
}
