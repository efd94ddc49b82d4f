import type { Command } from 'commander';
import type { Certs, TrustPlan, TrustStore } from '../../certs/index.ts';
import { CometError } from '../../common/errors.ts';
import { clientEnvironment, guardStatus, prepareAccess, rememberProxy } from '../../engine/lifecycle/index.ts';
import { userSettingsFile } from '../../install/index.ts';
import { addCommand, type CommandFlags, type Context } from '../context.ts';
import { ownVariables, setSettings } from './edit-settings.ts';

type Flags = CommandFlags<'system' | 'settings'>;

type SystemDone = TrustPlan & { readonly name: string };

export function registerInstallCa(program: Command, context: Context): void {
  const description = 'create the certificates and print what to set; nothing else changes without a flag';
  addCommand(program, 'install-ca', description, 'comet-cc install-ca --settings')
    .option('--system', 'also trust the root in the system stores (asks first, may need sudo)')
    .option('--settings', "also set it in Claude Code's settings.json (asks first, keeps a backup)")
    .option('--yes', 'do not ask for confirmation')
    .jsonAction('document', async (flags: Flags) => {
      const { certs, ...access } = await prepareAccess(context);
      const port = (await guardStatus(context.paths.guardSocket))?.port ?? (await context.config()).port;
      const variables = clientEnvironment({ ...access, port }, context.env);
      if (!flags.json) reportCerts(context, certs);
      await rememberProxy(context.paths, context.env);
      const settings = flags.settings ? await setSettings(context, variables, flags) : null;
      const stores = flags.system ? await trustInSystem(context, certs, flags) : [];
      const { change, rootFile, fingerprint, constraints, bundle } = certs;
      const document = {
        change,
        root: { file: rootFile, fingerprint, constraints, not_after: new Date(certs.notAfterMs).toISOString() },
        bundle: { file: bundle.file, user_file: bundle.userFile, problems: bundle.problems },
        env: variables,
        settings,
        system: stores[0] ?? null,
        stores,
      };
      context.term.print(flags, document, () => (settings === null ? nextLines(stores.length > 0) : []));
    });
}

function reportCerts({ term }: Context, certs: Certs): void {
  const what = { kept: 'kept as they were', issued: 'made', renewed: 'renewed' }[certs.change];
  term.out(`certificates  ${what}, valid until ${new Date(certs.notAfterMs).toISOString().slice(0, 10)}`);
  term.out(`root          ${certs.rootFile}`);
  term.out(`fingerprint   ${certs.fingerprint}`);
  term.out(`              ${certs.constraints}`);
  term.out(`bundle        ${certs.bundle.file}`);
  if (certs.bundle.userFile !== null) term.out(`              with your own ${certs.bundle.userFile} in it`);
}

function nextLines(inSystem: boolean): string[] {
  return [
    '',
    `${inSystem ? '' : 'Nothing else was changed. '}To use it, one of:`,
    '  comet-cc run claude              for one session',
    '  eval "$(comet-cc env)"           in this shell',
    '  comet-cc install-ca --settings   for every session of Claude Code',
  ];
}

async function trustInSystem(context: Context, certs: Certs, flags: Flags): Promise<readonly SystemDone[]> {
  const { trustStores } = await import('../../certs/index.ts');
  const stores = trustStores(context.env, context.paths.runDir);
  if (stores.length === 0) {
    const hint = 'Claude Code needs only NODE_EXTRA_CA_CERTS, see comet-cc env';
    throw new CometError('trust_failed', `this system's store is not known yet; ${hint}`);
  }
  const done: SystemDone[] = [];
  for (const store of stores) done.push(await findTrust(store, context, certs, flags));
  return done;
}

async function findTrust(store: TrustStore, context: Context, certs: Certs, flags: Flags): Promise<SystemDone> {
  const { trustRoot, inspectTrust } = await import('../../certs/index.ts');
  const { confirmed } = await import('../terminal/term.ts');
  const { paths, term } = context;
  const state = await inspectTrust(paths, store, certs.fingerprint);
  const plan = await store.describe(certs.rootFile, state.former);
  const done = { ...plan, name: store.name };
  if (state.holdsCurrent && state.former.length === 0) {
    if (!flags.json) term.out(`system        ${store.name} trusts it already`);
    return done;
  }
  term.say(plan.certificate.trimEnd());
  term.say(`fingerprint ${plan.fingerprint}: ${certs.constraints}`);
  for (const fingerprint of state.former) term.say(`in place of ${fingerprint}`);
  for (const command of plan.commands) term.say(`will run: ${command.join(' ')}`);
  if (!flags.yes && !(await confirmed(`Let everything on this machine trust it (${store.name})?`)))
    throw new CometError('trust_failed', `${store.name} was not changed`);
  await trustRoot(paths, store, certs.rootFile);
  if (!flags.json) term.out(`system        ${store.name} trusts it now: ${plan.files.join(', ')}`);
  return done;
}

export function registerUninstallCa(program: Command, context: Context): void {
  const description = 'undo install-ca: settings, system store, certificates';
  const command = addCommand(program, 'uninstall-ca', description, 'comet-cc uninstall-ca');
  command.jsonAction('document', async (flags: CommandFlags) => {
    const { distrustRoots, removeCerts, trustStores } = await import('../../certs/index.ts');
    const { uninstallEntries } = await import('../../install/claude-code/index.ts');
    const { env, paths, term } = context;
    const own = await ownVariables(context);
    const [settings = null] = await uninstallEntries(paths, 'env', [userSettingsFile(env)], own);
    const { stores, unreachable } = await distrustRoots(paths, trustStores(env, paths.runDir));
    const removed = await removeCerts(paths);
    for (const id of unreachable)
      term.say(`comet-cc: the ${id} store was told to trust our root and cannot be looked into now; remove it there`);
    if (flags.json) return term.json({ settings, system: stores[0] ?? null, stores, unreachable, removed });
    if (settings !== null) term.out(`settings      restored ${settings}`);
    for (const name of stores) term.out(`system        ${name} trusts it no longer`);
    for (const file of removed) term.out(`removed       ${file}`);
    if (settings === null && stores.length === 0 && removed.length === 0) term.out('nothing was installed');
  });
}
