import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { formatCount, oneLine, printable } from '../../common/text.ts';
import type { EngineStatus } from '../../engine/api/index.ts';
import { claudeDirectory, userMemoryFile } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context, EXIT } from '../context.ts';
import { openOnDesktop } from '../terminal/desktop.ts';
import { parseCount } from '../terminal/format.ts';
import { removeEntries } from './edit-settings.ts';
import { claudeLines, progressLine } from './memory/import.ts';
import { watched } from './memory/watch.ts';

type Flags = CommandFlags<'dryRun' | 'import', 'budget'>;

const READING = 'reading the transcripts and memory files of Claude Code …';
const WRITING = 'writing the pages …';

export function registerLibrary(program: Command, context: Context): void {
  const { paths, env, term } = context;
  const examples = 'comet-cc library build --dry-run\ncomet-cc library open\ncomet-cc library link';
  const library = addCommand(program, 'library', 'topic pages, as markdown files', examples);
  registerBuild(library, context);
  const linting = 'what to look at in the pages; exit code 1 where there is anything';
  addCommand(library, 'lint', linting, 'comet-cc library lint').jsonAction('array', async (flags: Flags) => {
    const problems = await context.engine.call('library/lint', {});
    if (problems.length > 0) context.exitCode = EXIT.failed;
    term.print(flags, problems, () =>
      problems.length === 0
        ? ['nothing to look at']
        : problems.map(({ file, line, kind, message }) => {
            const where = line === null ? '' : `:${line}`;
            return printable(`${file}${where}  ${kind.replace('_', ' ')}: ${message}`);
          }),
    );
  });
  const open = addCommand(library, 'open', "open the folder with the desktop's own program", 'comet-cc library open');
  open.jsonAction('document', async (flags: Flags) => {
    const { libraryPaths } = await import('../../memory/index.ts');
    const dir = libraryPaths((await context.config()).library.dir, paths).root;
    if (!existsSync(dir))
      throw new CometError('not_found', `${dir} is not there yet; comet-cc library build writes it`);
    const opened = await openOnDesktop(dir, env);
    term.print(flags, { dir, opened }, () => [printable(dir)]);
    if (!(opened || flags.json)) term.say('nothing here opens folders; this is where it is');
  });
  const linking = 'write profile, tasks and index into ~/.claude/CLAUDE.md, for use without proxy and hooks';
  addCommand(library, 'link', linking, 'comet-cc library link').jsonAction('document', async (flags: Flags) => {
    const { text: block } = await context.engine.call('library/block', {});
    const { installEntries } = await import('../../install/claude-code/index.ts');
    const { file, changed, backup } = await installEntries(paths, 'library', userMemoryFile(env), { block });
    term.print(flags, { file, changed, backup }, () => [
      changed ? `${file} has the library now, and follows it while comet-cc runs` : `${file} has it as it is now`,
      ...(backup === null ? [] : [`backup: ${backup}`]),
    ]);
  });
  const unlinking = { file: userMemoryFile(env), what: 'library', none: 'nothing was linked' };
  const unlink = addCommand(library, 'unlink', 'remove what library link wrote', 'comet-cc library unlink');
  unlink.jsonAction('document', (flags: Flags) => removeEntries(context, flags, 'library', unlinking));
}

function registerBuild(library: Command, context: Context): void {
  const { term, env } = context;
  const description = 'import what Claude Code kept, then write the pages; run it again to continue';
  addCommand(library, 'build', description, 'comet-cc library build --dry-run')
    .option('--dry-run', 'count what would be imported and written; change nothing')
    .option('--no-import', 'from memory as it is')
    .option('--budget <tokens>', 'write the memories with the configured model, within this many tokens')
    .jsonAction('document', async (flags: Flags) => {
      const dryRun = flags.dryRun ?? false;
      const budgetTokens = flags.budget === undefined ? undefined : parseCount(flags.budget, '--budget');
      const llm = budgetTokens === undefined ? ('local' as const) : ('claude' as const);
      const input = { claudeDir: path.resolve(claudeDirectory(env)), dryRun, llm, budgetTokens };
      const startMs = Date.now();
      let progress = (status: EngineStatus): string =>
        status.importing === null ? READING : progressLine(status.importing, Date.now() - startMs);
      const { imported, pages } = await watched(
        context,
        flags,
        (status) => progress(status),
        async () => {
          const report = flags.import === false ? null : await context.engine.call('memory/import-claude', input);
          progress = () => WRITING;
          return { imported: report, ...(await context.engine.call('memory/dream', { dryRun })) };
        },
      );
      const would = dryRun ? 'would be ' : '';
      term.print(flags, { dry_run: dryRun, imported, pages }, () => [
        ...(imported === null ? [] : claudeLines(imported)),
        ...pages.changed.map((name) => `topics/${printable(name)}.md`),
        `${formatCount(pages.changed.length, 'page')} ${would}written: ${formatCount(pages.added, 'statement')} added, ${pages.ended} no longer so`,
        ...pages.problems.map(({ file, message }) => `${printable(file)} ${printable(message)}`),
      ]);
      for (const { file, message } of flags.json ? [] : (imported?.problems ?? []))
        term.say(`${oneLine(file)}: ${oneLine(message)}`);
      if (dryRun && imported !== null && !flags.json) term.say('the pages are counted without what would be imported');
    });
}
