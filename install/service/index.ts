import { realpath } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { CometError } from '../../common/errors.ts';
import { type HomePaths, nodeProgram } from '../../common/paths.ts';
import { runCommand } from '../../common/run-process.ts';
import { readOwnFile, removeOwnFile, writeOwnFile } from '../edit-file.ts';

const COMMAND_MS = 60_000;

type Log = (line: string) => void;

export async function inspectService(plan: ServicePlan) {
  const { manager, file } = plan;
  const missing = (await succeeds(plan.probe)) ? '' : plan.missing;
  const installed = (await readOwnFile(file, MARK)) !== null;
  const running = installed && missing === '' && (await succeeds(plan.running));
  return { manager, file, installed, running, missing };
}

/**
 * Writes the service file and registers it with the manager; restores the former state when that fails.
 * @param isRunning  a daemon runs, which is not ended
 * @throws CometError `service_failed`, `unsafe_file` where the user has a file of that name
 */
export async function installService(paths: HomePaths, plan: ServicePlan, log: Log, isRunning = false): Promise<void> {
  await assertManager(plan);
  const { file } = plan;
  const before = await readOwnFile(file, MARK);
  await writeOwnFile(paths, { file, content: plan.content, mark: MARK });
  log(`wrote ${file}`);
  try {
    // launchd refuses a service that it has. Of one that runs it reads the file again at the next login.
    const isHeld = plan.manager === 'launchd' && (await succeeds(plan.running));
    const again = isRunning ? [] : [...plan.remove, ...plan.install];
    for (const command of isHeld ? again : plan.install) await run(command, log);
  } catch (error) {
    if (before === null) await removeOwnFile(paths, file);
    else await writeOwnFile(paths, { file, content: before, mark: MARK });
    throw error;
  }
}

/** @returns false when nothing was installed @throws CometError as `installService` */
export async function uninstallService(paths: HomePaths, plan: ServicePlan, log: Log): Promise<boolean> {
  if ((await readOwnFile(plan.file, MARK)) === null) return false;
  await assertManager(plan);
  // A service that the manager no longer knows must still be removable.
  for (const command of plan.remove) await run(command, log).catch((error: Error) => log(error.message));
  await removeOwnFile(paths, plan.file);
  log(`removed ${plan.file}`);
  for (const command of plan.afterwards) await run(command, log);
  return true;
}

async function assertManager(plan: ServicePlan): Promise<void> {
  if (!(await succeeds(plan.probe))) throw new CometError('service_failed', plan.missing);
}

async function run(command: CommandLine, log: Log): Promise<void> {
  log(`$ ${command.join(' ')}`);
  await runCommand(command, { code: 'service_failed', timeoutMs: COMMAND_MS });
}

const succeeds = (command: CommandLine): Promise<boolean> =>
  run(command, () => {}).then(
    () => true,
    () => false,
  );

type CommandLine = readonly [program: string, ...args: string[]];

export interface ServicePlan {
  readonly manager: string;
  /** The only file that is written. */
  readonly file: string;
  readonly content: string;
  /** Exits with 0 where the manager can be used. */
  readonly probe: CommandLine;
  /** Message where it cannot. */
  readonly missing: string;
  readonly install: readonly CommandLine[];
  /** Run before the file is removed. */
  readonly remove: readonly CommandLine[];
  /** Run after the file is removed. */
  readonly afterwards: readonly CommandLine[];
  /** Exits with 0 while the service runs. */
  readonly running: CommandLine;
}

/** The service of this user, machine and home; null where no manager is known. */
export async function currentServicePlan(env: NodeJS.ProcessEnv, home: string): Promise<ServicePlan | null> {
  const userHome = os.homedir();
  return planService({
    platform: process.platform,
    node: nodeProgram(env['PATH'] ?? ''),
    script: await realpath(process.argv[1] as string),
    home,
    userHome,
    configHome: env['XDG_CONFIG_HOME'] || path.join(userHome, '.config'),
    uid: process.getuid?.() ?? -1,
    searchPath: env['PATH'] ?? '',
    claudeDir: env['CLAUDE_CONFIG_DIR'] ?? '',
  });
}

export function planService(facts: ServiceFacts): ServicePlan | null {
  if (facts.platform === 'linux') return systemd(facts);
  return facts.platform === 'darwin' ? launchd(facts) : null;
}

function systemd(facts: ServiceFacts): ServicePlan {
  const unit = 'comet-cc.service';
  const systemctl = (...args: string[]): CommandLine => ['systemctl', '--user', ...args];
  return {
    manager: 'systemd',
    file: path.posix.join(facts.configHome, 'systemd', 'user', unit),
    content: systemdUnit(facts),
    probe: systemctl('show-environment'),
    missing: 'no systemd session of this user (systemctl --user); comet-cc start works without one',
    install: [systemctl('daemon-reload'), systemctl('enable', '--now', unit)],
    remove: [systemctl('disable', '--now', unit)],
    afterwards: [systemctl('daemon-reload')],
    running: systemctl('is-active', '--quiet', unit),
  };
}

export const LABEL = 'comet-cc.daemon';

function launchd(facts: ServiceFacts): ServicePlan {
  const domain = `gui/${facts.uid}`;
  const file = path.posix.join(facts.userHome, 'Library', 'LaunchAgents', `${LABEL}.plist`);
  return {
    manager: 'launchd',
    file,
    content: plistText(facts),
    probe: ['launchctl', 'print', domain],
    missing: 'no desktop session of this user (launchctl print); comet-cc start works without one',
    install: [['launchctl', 'bootstrap', domain, file]],
    remove: [['launchctl', 'bootout', `${domain}/${LABEL}`]],
    afterwards: [],
    running: ['launchctl', 'print', `${domain}/${LABEL}`],
  };
}

/** Identifies a file of comet-cc before it is replaced or removed. */
export const MARK = 'Made by comet-cc service install';

const DESCRIPTION = 'comet-cc: memory for Claude Code';
const ARGS = ['start', '--foreground'] as const;

/** The machine and user that a service is for. */
export interface ServiceFacts {
  readonly platform: NodeJS.Platform;
  readonly node: string;
  /** The built `comet-cc.js`. */
  readonly script: string;
  /** `COMET_CC_HOME`. */
  readonly home: string;
  readonly userHome: string;
  /** `XDG_CONFIG_HOME`, else `~/.config`. */
  readonly configHome: string;
  /** -1 where users have no id. */
  readonly uid: number;
  /** `PATH` of the shell, where Claude Code is found. */
  readonly searchPath: string;
  /** `CLAUDE_CONFIG_DIR`: login and transcripts of Claude Code; '' for its default. */
  readonly claudeDir: string;
}

/**
 * A unit for the user's manager. A stopped daemon (exit code 0) stays stopped; a crashed one restarts at once.
 *
 * Source: systemd.service(5), systemd.syntax(7), "Specifiers" of systemd.unit(5).
 */
function systemdUnit(facts: ServiceFacts): string {
  const environment = Object.entries(variables(facts)).map(
    ([name, value]) => `Environment=${quoteWord(`${name}=${value}`)}`,
  );
  // systemd expands a dollar sign in a command line, not in an assignment.
  const command = [facts.node, facts.script, ...ARGS].map((part) => quoteWord(part).replaceAll('$', '$$$$'));
  return [
    `# ${MARK}; comet-cc service uninstall removes it.`,
    '[Unit]',
    `Description=${DESCRIPTION}`,
    'StartLimitIntervalSec=60',
    'StartLimitBurst=10',
    '',
    '[Service]',
    `ExecStart=${command.join(' ')}`,
    ...environment,
    'UMask=0077',
    'Restart=on-failure',
    'RestartSec=200ms',
    'KillMode=mixed',
    'TimeoutStopSec=40',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
}

/** Source: launchd.plist(5). */
function plistText(facts: ServiceFacts): string {
  const environment = Object.entries(variables(facts)).map(
    ([name, value]) => `    <key>${name}</key><string>${escapeXml(value)}</string>`,
  );
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    `<!-- ${MARK} -->`,
    '<plist version="1.0"><dict>',
    `  <key>Label</key><string>${LABEL}</string>`,
    '  <key>ProgramArguments</key><array>',
    ...[facts.node, facts.script, ...ARGS].map((part) => `    <string>${escapeXml(part)}</string>`),
    '  </array>',
    '  <key>EnvironmentVariables</key><dict>',
    ...environment,
    '  </dict>',
    '  <key>RunAtLoad</key><true/>',
    '  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>',
    '  <key>ThrottleInterval</key><integer>1</integer>',
    '  <key>ExitTimeOut</key><integer>40</integer>',
    // Octal 077, which launchd reads as a decimal number.
    '  <key>Umask</key><integer>63</integer>',
    '</dict></plist>',
    '',
  ].join('\n');
}

function variables({ home, searchPath, claudeDir }: ServiceFacts): Record<string, string> {
  const all = { COMET_CC_HOME: home, COMET_CC_SERVICE: '1', PATH: searchPath };
  return claudeDir === '' ? all : { ...all, CLAUDE_CONFIG_DIR: claudeDir };
}

/** One word of a systemd file, where quotes, backslashes and percent signs are special. */
function quoteWord(text: string): string {
  const safe = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('\n', '\\n');
  return `"${safe}"`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
