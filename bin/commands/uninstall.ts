import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import type { Context } from '../context.ts';

interface Flags {
  readonly keepMemory?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

interface Found {
  readonly step: string;
  readonly what: readonly string[];
}

export function registerUninstall(program: Command, context: Context): void {
  program
    .command('uninstall')
    .description('remove everything that comet-cc installed or wrote, and verify it')
    .option('--keep-memory', 'keep the memories and the raw turns')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExamples:\n  comet-cc uninstall\n  comet-cc uninstall --keep-memory --yes')
    .action(async (flags: Flags) => {
      const { uninstallSteps } = await import('./uninstall-steps.ts');
      const { confirmed } = await import('../terminal/term.ts');
      const { paths, term } = context;
      const keepMemory = flags.keepMemory ?? false;
      const steps = uninstallSteps(context, { keepMemory, log: flags.json ? () => undefined : term.say });
      const look = async (): Promise<Found[]> => {
        const found = await Promise.all(steps.map(async (step) => ({ step: step.id, what: await step.present() })));
        return found.filter(({ what }) => what.length > 0);
      };

      const found = await look();
      if (found.length === 0) {
        if (flags.json) return term.json({ removed: [], left: [] });
        return term.out('nothing of comet-cc is here');
      }
      if (!flags.yes) {
        for (const line of lines(found)) term.say(line);
        const what = keepMemory ? 'all of this, but not the memories' : 'all of this, memories included';
        if (!(await confirmed(`Remove ${what}?`))) throw new CometError('usage', 'nothing was removed');
      }
      const failures: string[] = [];
      for (const { id, undo } of steps) {
        // The notes by which a change elsewhere is found again must outlive it.
        if (id === 'files' && failures.length > 0) break;
        await undo().catch((error: unknown) => failures.push(`${id}: ${(error as Error).message}`));
      }
      const left = await look();
      if (flags.json) term.json({ removed: found, left, failures });
      else report(context, { found, left });
      if (left.length > 0 || failures.length > 0) {
        throw new CometError('uninstall_incomplete', [...failures, ...lines(left)].join('\n  '));
      }
      if (flags.json) return;
      if (existsSync(paths.home))
        term.say(`${paths.home} stays: ${keepMemory ? 'your memories are' : 'something that is not ours is'} in it`);
      term.say('A shell in which comet-cc env was evaluated still has its variables: open another one.');
      term.say('What you gave Claude Code yourself, if you did:');
      term.say('  claude mcp remove comet-cc; claude plugin uninstall comet-cc@comet-cc');
      term.say('The program itself: npm uninstall -g comet-cc, if you installed it globally.');
    });
}

function report(
  { term }: Context,
  { found, left }: { readonly found: readonly Found[]; readonly left: readonly Found[] },
) {
  const still = new Set(left.flatMap(({ what }) => what));
  const gone = found.map((one) => ({ ...one, what: one.what.filter((each) => !still.has(each)) }));
  for (const line of lines(gone)) term.out(line);
  if (left.length === 0) term.out('nothing of comet-cc is left');
}

function lines(found: readonly Found[]): string[] {
  return found.flatMap(({ step, what }) => what.map((one) => `${step.padEnd(12)} ${one}`));
}
