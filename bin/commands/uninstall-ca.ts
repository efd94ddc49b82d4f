import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import type { Context } from '../context.ts';

export function registerUninstallCa(program: Command, context: Context): void {
  program
    .command('uninstall-ca')
    .description('undo install-ca: settings, system store, certificates')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc uninstall-ca')
    .action(async (flags: { json?: boolean }) => {
      const { removeCerts, revertSettings } = await import('../../certs/index.ts');
      const { paths, term } = context;
      const settings = await revertSettings(paths);
      const system = await distrust(context);
      const removed = await removeCerts(paths);
      if (flags.json) return term.json({ settings, system, removed });
      if (settings !== null) term.out(`settings      ${settings} is as it was`);
      if (system !== null) term.out(`system        ${system} trusts it no longer`);
      for (const file of removed) term.out(`removed       ${file}`);
      if (settings === null && system === null && removed.length === 0) term.out('nothing was installed');
    });
}

/** The name of the store that trusted our root and was seen to do so no longer; null when none did. */
async function distrust({ paths }: Context): Promise<string | null> {
  const { systemTrust } = await import('../../certs/index.ts');
  const store = systemTrust();
  const rootFile = path.join(paths.certsDir, 'root.pem');
  if (store === null || !existsSync(rootFile)) return null;
  const { fingerprint } = await store.describe(rootFile);
  return (await store.remove(fingerprint)) ? store.name : null;
}
