import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { projectAt } from './pause.ts';

export function registerResume(program: Command, context: Context): void {
  program
    .command('resume')
    .description('end every pause, or that of one project')
    .option('--project <dir>', 'only the pause of the project of this directory')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc resume')
    .action(async (flags: { project?: string; json?: boolean }) => {
      const { pauseLines } = await import('../../engine/api/index.ts');
      const { NO_PAUSES, readPauses, resumed, writePauses } = await import('../../engine/policy/index.ts');
      const { paths, term } = context;
      // A damaged pause file pauses everything; resuming repairs it.
      const now = Date.now();
      const held = await readPauses(paths.pausesFile, now).catch(() => NO_PAUSES);
      const left = resumed(held, flags.project === undefined ? null : await projectAt(flags.project), now);
      await writePauses(paths.pausesFile, left);
      if (flags.json) return term.json(left);
      const lines = pauseLines(left);
      for (const line of lines) term.out(line);
      if (lines.length === 0) term.out('memory is on, unless a .comet-cc.json says otherwise');
    });
}
