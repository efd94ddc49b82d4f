import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { getMessage } from '../../common/errors.ts';
import { readFileIfPresent } from '../../common/files.ts';
import { formatCount, oneLine } from '../../common/text.ts';
import { claudeEnv, clientEnvironment } from '../../engine/lifecycle/index.ts';
import { addCommand, type Context, EXIT } from '../context.ts';
import type { Check } from '../doctor/index.ts';

export function registerDoctor(program: Command, context: Context): void {
  const description = 'check the installation and say how to fix problems; exit code 1 when there are any';
  addCommand(program, 'doctor', description, 'comet-cc doctor --json').jsonAction('document', async (flags) => {
    const checks = await allChecks(context);
    const ok = checks.every((check) => check.ok);
    const { paint, print } = context.term;
    print(flags, { ok, checks }, () => [...checks.flatMap((check) => checkLines(check, paint)), countLine(checks)]);
    if (!ok) context.exitCode = EXIT.failed;
  });
}

const STYLES = { ok: 'green', problem: 'red', unknown: 'yellow' } as const;
const NAMES: Readonly<Record<string, string>> = { node: 'runtime' };

export function checkLines({ id, state, detail, fix }: Check, paint: Context['term']['paint']): string[] {
  const line = `${paint(STYLES[state], state.padEnd(7))} ${(NAMES[id] ?? id).padEnd(10)} ${oneLine(detail)}`;
  return fix === '' ? [line] : [line, `                   ${paint('yellow', `fix: ${oneLine(fix)}`)}`];
}

export function countLine(checks: readonly Pick<Check, 'state'>[]): string {
  const of = (state: Check['state']): number => checks.filter((check) => check.state === state).length;
  return `${of('ok')} ok, ${formatCount(of('problem'), 'problem')}, ${of('unknown')} unknown`;
}

const NO_HOME = 'not known while there is no home';

async function allChecks(context: Context): Promise<Check[]> {
  const { paths, env } = context;
  const machine = await import('../doctor/index.ts');
  const { bad, good, unknown } = machine;
  const daemon = await import('../doctor/daemon.ts');
  const outside = await import('../doctor/upstream.ts');
  const { statusReport } = await import('../../engine/api/index.ts');
  const { checkCerts, checkTrust } = await import('../doctor/certs.ts');
  const { bundleFile, trustStores } = await import('../../certs/index.ts');

  const config = await context.config().catch((error: unknown) => getMessage(error));
  const { guard, problem } = await daemon.askedGuard(paths);
  const report = guard === null ? null : await statusReport(context, guard);
  const token = await readFileIfPresent(paths.proxyTokenFile).catch(() => null);
  const home = await machine.checkHome(paths);
  const checks = [
    machine.checkNode(process.version),
    machine.checkPlatform(process.platform, process.arch),
    typeof config === 'string'
      ? bad('config', config, 'correct the named key; comet-cc does not fall back to its default')
      : good('config', paths.configFile),
    home,
    ...(home.ok || existsSync(paths.home)
      ? [await checkCerts(paths, Date.now()), await checkTrust(paths, trustStores(env, paths.runDir), Date.now())]
      : [unknown('certs', NO_HOME), unknown('trust', NO_HOME)]),
    daemon.checkEngine(report, problem),
    daemon.checkBuild(report),
    daemon.checkStore(report),
    daemon.checkModel(report),
  ];
  if (typeof config === 'string') return checks;
  const { checkEditors, checkSettings } = await import('../doctor/settings.ts');
  const secret = token?.trim() ?? '';
  const access = { port: guard?.port ?? config.port, token: secret, bundle: bundleFile(paths.certsDir) };
  const wanted = secret === '' ? null : clientEnvironment(access, env);
  const { checkEmbedder, checkEndpoint } = await import('../doctor/endpoint.ts');
  const { checkIntegration, checkSessions } = await import('../doctor/claude-code.ts');
  const { ownCommands } = await import('./hooks.ts');
  const editors = await checkEditors(paths, wanted);
  const failed = report?.problems.find(({ file }) => file === 'upstream')?.message;
  const { inspectSettings } = await import('../../install/claude-code/index.ts');
  const isExpected =
    wanted !== null &&
    (env['HTTPS_PROXY'] === wanted['HTTPS_PROXY'] || (await inspectSettings(paths, wanted).catch(() => null)) !== null);
  return [
    ...checks,
    await checkSettings(paths, env, wanted),
    ...(editors === null ? [] : [editors]),
    ...(await checkIntegration(paths, env, await ownCommands())),
    config.ledger.receipts === 0
      ? unknown('sessions', 'not known while ledger.receipts is 0')
      : await checkSessions(env, report, Date.now(), isExpected),
    await daemon.checkPort(guard, config.port, secret === '' ? null : secret),
    await outside.checkUpstream(config, await claudeEnv(env, paths), guard, failed),
    config.llm === 'claude'
      ? await outside.checkClaude(config.claudeBin, env)
      : good('claude', `not used as the model (llm is ${config.llm})`),
    await checkEmbedder(config, env),
    ...(config.llm === 'openai' ? [await checkEndpoint(config.openai, env)] : []),
  ];
}
