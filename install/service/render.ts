/** Identifies a file of comet-cc before it is replaced or removed. */
export const MARK = 'Made by comet-cc service install';

const DESCRIPTION = 'comet-cc: memory for Claude Code';
const ARGS = ['start', '--foreground'] as const;

/** The machine and user that a service is for. */
export interface ServiceFacts {
  readonly platform: NodeJS.Platform;
  /** Node's executable. */
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
}

type Facts = Pick<ServiceFacts, 'node' | 'script' | 'home' | 'searchPath'>;

/**
 * A unit for the user's manager. A stopped daemon (exit code 0) stays stopped; a crashed one restarts at once.
 *
 * Source: systemd.service(5), systemd.syntax(7), "Specifiers" of systemd.unit(5).
 */
export function systemdUnit(facts: Facts): string {
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
export function plistText(facts: Facts, label: string): string {
  const strings = [facts.node, facts.script, ...ARGS].map((part) => `    <string>${escapeXml(part)}</string>`);
  const environment = Object.entries(variables(facts)).map(
    ([name, value]) => `    <key>${name}</key><string>${escapeXml(value)}</string>`,
  );
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    `<!-- ${MARK} -->`,
    '<plist version="1.0"><dict>',
    `  <key>Label</key><string>${escapeXml(label)}</string>`,
    '  <key>ProgramArguments</key><array>',
    ...strings,
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

/**
 * A task has no environment of its own; home, proxy and PATH come from the user's settings.
 *
 * Source: Task Scheduler schema 1.2; one minute is the shortest delay before a restart.
 */
export function taskXml({ node, script }: Facts): string {
  const args = [script, ...ARGS].map((part) => `"${part}"`).join(' ');
  return [
    '<?xml version="1.0" encoding="UTF-16"?>',
    `<!-- ${MARK} -->`,
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">',
    `  <RegistrationInfo><Description>${DESCRIPTION}</Description></RegistrationInfo>`,
    '  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>',
    '  <Principals><Principal id="Author"><LogonType>InteractiveToken</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal></Principals>',
    '  <Settings>',
    '    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>',
    '    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>',
    '    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>',
    '    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>',
    '    <RestartOnFailure><Interval>PT1M</Interval><Count>255</Count></RestartOnFailure>',
    '  </Settings>',
    `  <Actions Context="Author"><Exec><Command>${escapeXml(node)}</Command><Arguments>${escapeXml(args)}</Arguments></Exec></Actions>`,
    '</Task>',
    '',
  ].join('\r\n');
}

function variables({ home, searchPath }: Facts): Record<string, string> {
  return { COMET_CC_HOME: home, COMET_CC_SERVICE: '1', PATH: searchPath };
}

/** One word of a systemd file, where quotes, backslashes and percent signs are special. */
function quoteWord(text: string): string {
  const safe = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('\n', '\\n');
  return `"${safe}"`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
