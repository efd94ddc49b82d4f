import { realpath } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { plistText, type ServiceFacts, systemdUnit, taskXml } from './render.ts';

export type CommandLine = readonly [program: string, ...args: string[]];

export interface ServicePlan {
  readonly manager: string;
  /** The only file that is written. */
  readonly file: string;
  readonly content: Buffer;
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
    node: process.execPath,
    script: await realpath(process.argv[1] as string),
    home,
    userHome,
    configHome: env['XDG_CONFIG_HOME'] || path.join(userHome, '.config'),
    uid: process.getuid?.() ?? -1,
    searchPath: env['PATH'] ?? '',
  });
}

/** How this platform starts the daemon at login and after a crash; null where no manager is known. */
export function planService(facts: ServiceFacts): ServicePlan | null {
  if (facts.platform === 'linux') return systemd(facts);
  if (facts.platform === 'darwin') return launchd(facts);
  return facts.platform === 'win32' ? taskScheduler(facts) : null;
}

function systemd(facts: ServiceFacts): ServicePlan {
  const unit = 'comet-cc.service';
  const systemctl = (...args: string[]): CommandLine => ['systemctl', '--user', ...args];
  return {
    manager: 'systemd',
    file: path.posix.join(facts.configHome, 'systemd', 'user', unit),
    content: Buffer.from(systemdUnit(facts)),
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
    content: Buffer.from(plistText(facts, LABEL)),
    probe: ['launchctl', 'print', domain],
    missing: 'no desktop session of this user (launchctl print); comet-cc start works without one',
    install: [['launchctl', 'bootstrap', domain, file]],
    remove: [['launchctl', 'bootout', `${domain}/${LABEL}`]],
    afterwards: [],
    running: ['launchctl', 'print', `${domain}/${LABEL}`],
  };
}

function taskScheduler(facts: ServiceFacts): ServicePlan {
  const file = path.win32.join(facts.home, 'service.xml');
  const task = (...args: string[]): CommandLine => ['schtasks.exe', ...args, '/TN', 'comet-cc'];
  return {
    manager: 'Windows Task Scheduler',
    file,
    // The only encoding that the scheduler reads reliably.
    content: Buffer.from(`\ufeff${taskXml(facts)}`, 'utf16le'),
    probe: ['schtasks.exe', '/Query'],
    missing: 'the task scheduler does not answer (schtasks.exe /Query); comet-cc start works without it',
    install: [task('/Create', '/XML', file, '/F'), task('/Run')],
    remove: [task('/End'), task('/Delete', '/F')],
    afterwards: [],
    running: task('/Query'),
  };
}
