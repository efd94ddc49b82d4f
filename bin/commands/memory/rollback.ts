import type { Command } from 'commander';
import { ago, engineOf } from '../../../engine/api/index.ts';
import type { SnapshotInfo } from '../../../memory/index.ts';
import type { Context } from '../../context.ts';
import { table } from '../../terminal/table.ts';

const LONGEST_MS = 600_000;

export function registerMemoryRollback(memory: Command, context: Context): void {
  memory
    .command('rollback')
    .description('restore memories from a snapshot; without an argument: list snapshots')
    .argument('[snapshot]', 'unambiguous prefix of its id')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      '\nMemories of later conversations are kept. Memories removed with rm are not restored.' +
        '\n\nExample:\n  comet-cc memory rollback 20261121T22',
    )
    .action(async (snapshot: string | undefined, flags: { json?: boolean }) => {
      const client = engineOf(context.paths);
      const { term } = context;
      if (snapshot === undefined) {
        const found = await client.call('snapshots/list', {});
        if (flags.json) return term.json(found);
        if (found.length === 0) return term.say('no snapshots yet; one is taken before each change');
        for (const line of snapshotLines(found, term.width, Date.now())) term.out(line);
        return;
      }
      const report = await client.call('snapshots/rollback', { id: snapshot }, { timeoutMs: LONGEST_MS });
      if (flags.json) return term.json(report);
      term.out(`${report.restored} restored, ${report.removed} removed, ${report.briefs} briefs restored`);
      term.say(`to undo this: comet-cc memory rollback ${report.undo}`);
    });
}

export function snapshotLines(snapshots: readonly SnapshotInfo[], width: number, nowMs: number): string[] {
  return table(
    [
      { title: 'SNAPSHOT', cells: snapshots.map(({ id }) => id) },
      { title: 'WHEN', cells: snapshots.map(({ at }) => ago(Date.parse(at), nowMs)) },
      { title: 'BEFORE', cells: snapshots.map(({ reason }) => reason) },
      { title: 'BYTES', cells: snapshots.map(({ bytes }) => String(bytes)), right: true },
    ],
    width,
  );
}
