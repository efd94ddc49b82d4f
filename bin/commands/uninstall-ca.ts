import type { Command } from 'commander';
import type { Context } from '../context.ts';

export function registerUninstallCa(program: Command, context: Context): void {
  program
    .command('uninstall-ca')
    .description('undo install-ca: settings, system store, certificates')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc uninstall-ca')
    .action(async (flags: { json?: boolean }) => {
      const { distrustRoots, removeCerts, inspectMachine, trustStores } = await import('../../certs/index.ts');
      const { revertSettings } = await import('../../install/claude-code/index.ts');
      const { env, paths, term } = context;
      const settings = await revertSettings(paths);
      const { stores, unreachable } = await distrustRoots(paths, trustStores(inspectMachine(env, paths.runDir)));
      const removed = await removeCerts(paths);
      for (const id of unreachable) {
        term.say(`comet-cc: the ${id} store was told to trust our root and cannot be looked into now; remove it there`);
      }
      if (flags.json) return term.json({ settings, system: stores[0] ?? null, stores, unreachable, removed });
      if (settings !== null) term.out(`settings      restored ${settings}`);
      for (const name of stores) term.out(`system        ${name} trusts it no longer`);
      for (const file of removed) term.out(`removed       ${file}`);
      if (settings === null && stores.length === 0 && removed.length === 0) term.out('nothing was installed');
    });
}
