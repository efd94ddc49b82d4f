import { describe, expect, it } from 'vitest';
import { MARK, planService, type ServiceFacts, type ServicePlan } from '../../../install/service/index.ts';

const FACTS: ServiceFacts = {
  platform: 'linux',
  node: '/opt/node 20/bin/node',
  script: '/home/u/50%/$x/"q"\\/comet-cc.js',
  home: '/home/u/.comet-cc',
  userHome: '/home/u',
  configHome: '/home/u/.config',
  uid: 501,
  searchPath: '/a b:/usr/bin',
  claudeDir: '',
};

const plan = (over: Partial<ServiceFacts>): ServicePlan => planService({ ...FACTS, ...over }) as ServicePlan;

describe('systemd', () => {
  const { file, content, install, remove } = plan({});
  const text = content.toString();

  it('gets one unit below the configuration of the user', () => {
    expect(file).toBe('/home/u/.config/systemd/user/comet-cc.service');
    expect(text).toContain(MARK);
    expect(text).toContain('\n[Install]\nWantedBy=default.target\n');
    expect(text).toContain('\nUMask=0077\nRestart=on-failure\nRestartSec=200ms\n');
    expect(install.map((line) => line.join(' '))).toEqual([
      'systemctl --user daemon-reload',
      'systemctl --user enable --now comet-cc.service',
    ]);
    expect(remove.map((line) => line.join(' '))).toEqual(['systemctl --user disable --now comet-cc.service']);
  });

  it('reads each word as it is meant: blanks, quotes, percent and dollar signs', () => {
    const line = text.split('\n').find((one) => one.startsWith('ExecStart='));
    expect(line).toBe(
      'ExecStart="/opt/node 20/bin/node" "/home/u/50%%/$$x/\\"q\\"\\\\/comet-cc.js" "start" "--foreground"',
    );
    expect(text).toContain('\nEnvironment="PATH=/a b:/usr/bin"\n');
    expect(text).toContain('\nEnvironment="COMET_CC_HOME=/home/u/.comet-cc"\n');
    expect(text).not.toContain('CLAUDE_CONFIG_DIR');
    // Where the login is that `claude -p` needs.
    expect(plan({ claudeDir: '/c d' }).content.toString()).toContain('\nEnvironment="CLAUDE_CONFIG_DIR=/c d"\n');
    expect(plan({ home: '/h\nExecStart=/bin/evil' }).content.toString()).not.toMatch(/^ExecStart=\/bin\/evil/m);
  });
});

describe('launchd', () => {
  const { file, content, install, remove } = plan({ platform: 'darwin', home: '/Users/u & co/<h>' });
  const text = content.toString();

  it('gets one agent of this user, started again unless it ended by itself', () => {
    expect(file).toBe('/home/u/Library/LaunchAgents/comet-cc.daemon.plist');
    expect(text).toContain(MARK);
    expect(text).toContain('<string>start</string>\n    <string>--foreground</string>');
    expect(text).toContain('<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>');
    expect(text).toContain('<string>/Users/u &amp; co/&lt;h&gt;</string>');
    expect(install).toEqual([['launchctl', 'bootstrap', 'gui/501', file]]);
    expect(remove).toEqual([['launchctl', 'bootout', 'gui/501/comet-cc.daemon']]);
  });
});

it('elsewhere there is no plan, and none ever holds the token or a proxy', () => {
  for (const platform of ['freebsd', 'win32'] as const) expect(planService({ ...FACTS, platform })).toBeNull();
  for (const platform of ['linux', 'darwin'] as const) {
    expect(plan({ platform }).content).not.toMatch(/proxy|token"/i);
  }
});
