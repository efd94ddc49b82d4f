import { existsSync } from 'node:fs';
import { readdir, readFile, rmdir } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import { CometError } from '../../common/errors.ts';
import { formatCount, oneLine } from '../../common/text.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';

type Flags = CommandFlags<'keepMemory', 'export'>;

interface Finding {
  readonly step: string;
  readonly what: readonly string[];
}

export function registerUninstall(program: Command, context: Context): void {
  const examples = 'comet-cc uninstall\ncomet-cc uninstall --keep-memory --yes';
  addCommand(program, 'uninstall', 'remove everything that comet-cc installed or wrote, and verify it', examples)
    .option('--keep-memory', 'keep the memories and the raw turns')
    .option('--export <file>', 'first write the memories to this file, which memory import --as export reads')
    .option('--yes', 'do not ask for confirmation')
    .jsonAction('document', (flags: Flags) => uninstall(context, flags));
}

async function uninstall(context: Context, flags: Flags): Promise<void> {
  const { uninstallSteps } = await import('./uninstall-plan.ts');
  const { paths, term } = context;
  const keepMemory = flags.keepMemory ?? false;
  const steps = uninstallSteps(context, { keepMemory, log: flags.json ? () => undefined : term.say });
  const look = async (): Promise<Finding[]> => {
    const findings = await Promise.all(steps.map(async (step) => ({ step: step.id, what: await step.present() })));
    return findings.filter(({ what }) => what.length > 0);
  };

  const findings = await look();
  if (findings.length === 0) {
    await rmdir(paths.home).catch(() => undefined);
    return term.print(flags, { removed: [], left: [] }, () => ['nothing of comet-cc is here']);
  }
  const shared = (await context.config().catch(() => null))?.share.url ?? '';
  // The key that may remove it goes, too.
  if (shared !== '') term.say(`What this machine published stays in ${oneLine(shared)}: comet-cc share leave first`);
  const memories = keepMemory ? 0 : await countMemories(paths);
  await agree(context, flags, findings, memories);
  const failures: string[] = [];
  for (const { id, undo } of steps) {
    // The notes by which a change elsewhere is found again must outlive it.
    if (id === 'files' && failures.length > 0) break;
    await undo().catch((error: unknown) => failures.push(`${id}: ${(error as Error).message}`));
  }
  const left = await look();
  if (flags.json) term.json({ removed: findings, left, failures, memories });
  else {
    const still = new Set(left.flatMap(({ what }) => what));
    const removals = findings.map((one) => ({ ...one, what: one.what.filter((each) => !still.has(each)) }));
    for (const line of lines(removals)) term.out(line);
    if (left.length === 0) {
      if (memories > 0) term.out(`${'memories'.padEnd(12)} ${formatCount(memories, 'memory', 'memories')}`);
      term.out(`nothing of comet-cc is left${keepMemory ? ' but your memories' : ''}`);
    }
  }
  if (left.length > 0 || failures.length > 0)
    throw new CometError('uninstall_incomplete', [...failures, ...lines(left)].join('\n  '));
  if (flags.json) return;
  const { findTrackedServers } = await import('../../install/claude-code/index.ts');
  for (const line of await findTrackedServers(context.env))
    term.say(`Not changed, because git tracks it; to take comet-cc out of ${line}`);
  if (existsSync(paths.home))
    term.say(`${paths.home} stays: ${keepMemory ? 'your memories are' : 'something that is not ours is'} in it`);
  term.say('Open sessions continue without memory. A shell with the variables of comet-cc env has to be replaced.');
  term.say('The program itself: npm uninstall -g comet-cc, if you installed it globally.');
}

/** Asks whether to export the memories and to remove everything; exports them. @throws CometError `usage` after a no */
async function agree(context: Context, flags: Flags, findings: readonly Finding[], memories: number): Promise<void> {
  const { confirmed } = await import('../terminal/term.ts');
  let file = flags.export;
  if (!flags.yes) {
    for (const line of lines(findings)) context.term.say(line);
    const offered = memories > 0 && file === undefined;
    if (offered && (await confirmed(`Export the ${formatCount(memories, 'memory', 'memories')} to ./${EXPORT} first?`)))
      file = EXPORT;
    const what =
      memories === 0 ? 'all of this' : `all of this, ${formatCount(memories, 'memory', 'memories')} included`;
    if (!(await confirmed(`Remove ${what}?`))) throw new CometError('usage', 'nothing was removed');
  }
  if (file !== undefined) await exportMemories(context, path.resolve(file));
}

const EXPORT = 'comet-cc-memories.jsonl';

/** Sections of the node files: the daemon need not run to say how many go. */
async function countMemories({ nodesDir }: Context['paths']): Promise<number> {
  const names = await readdir(nodesDir, { recursive: true }).catch(() => []);
  const files = names.filter((name) => name.endsWith('.md')).map((name) => path.join(nodesDir, name));
  let memories = 0;
  // What cannot be read goes all the same. All at once would open more files than a process may.
  for (const file of files) memories += (await readFile(file, 'utf8').catch(() => '')).match(/^## mem_/gm)?.length ?? 0;
  return memories;
}

/** Starts the daemon where it is down: what is exported comes from the engine. */
async function exportMemories(context: Context, file: string): Promise<void> {
  if (!path.relative(context.paths.home, file).startsWith('..'))
    throw new CometError('usage', `${file} would be removed too; name a file outside ${context.paths.home}`);
  const { prepareDaemon, startDaemon } = await import('../../engine/lifecycle/index.ts');
  const { getEngine } = await import('../../engine/api/index.ts');
  const { writeOutput } = await import('../../common/files.ts');
  await startDaemon(await prepareDaemon(context, {}));
  await writeOutput(file, await getEngine(context.paths).call('memory/export', { format: 'jsonl' }));
  context.term.say(`wrote ${file}`);
}

function lines(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ step, what }) => what.map((one) => `${step.padEnd(12)} ${one}`));
}
