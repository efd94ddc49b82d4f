import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, createTestHome, type TestHome } from '../helpers/cli.ts';

let home: TestHome;

beforeEach(async () => {
  home = await createTestHome();
});
afterEach(() => home.close());

const files = async (): Promise<string[]> =>
  (await readdir(home.user, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(home.user, path.join(entry.parentPath, entry.name)));

/** A service manager that notes what it is asked, and fails at `failing`. */
async function fakeSystemctl(
  failing = 'nothing',
): Promise<{ env: Record<string, string>; asked(): Promise<string[]> }> {
  const bin = path.join(path.dirname(home.user), 'bin');
  const notes = path.join(bin, 'asked');
  await mkdir(bin, { recursive: true });
  const script = `#!/bin/sh\necho "$*" >> '${notes}'\ncase "$*" in *${failing}*) echo 'it is broken' >&2; exit 1;; esac\n`;
  await writeFile(path.join(bin, 'systemctl'), script);
  await chmod(path.join(bin, 'systemctl'), 0o700);
  return {
    env: { PATH: `${bin}:${process.env['PATH']}` },
    asked: async () => (await readFile(notes, 'utf8')).trim().split('\n'),
  };
}

const UNIT = '.config/systemd/user/comet-cc.service';

describe.skipIf(process.platform !== 'linux')('service', () => {
  it('says what is missing where no session manager answers, and changes nothing', async () => {
    const { env } = await fakeSystemctl('show-environment');
    const { code, stdout, stderr } = await home.run(['service', 'install'], { env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('no systemd session');
    expect(await files()).toEqual([]);
    expect(await home.json(['service', 'status', '--json'], { env })).toMatchObject({
      installed: false,
      running: false,
    });
    expect((await home.run(['service', 'uninstall'], { env })).stdout).toBe('nothing was installed\n');
  });

  it('writes one private file, shows each command, and takes exactly that back', async () => {
    const { env, asked } = await fakeSystemctl();
    const { code, stdout } = await home.run(['service', 'install'], { env });
    expect(code).toBe(0);
    expect(stdout).toContain('$ systemctl --user enable --now comet-cc.service');
    expect(await files()).toEqual([UNIT]);
    const file = path.join(home.user, UNIT);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const text = await readFile(file, 'utf8');
    expect(text).toContain(`ExecStart="${process.execPath}" "${CLI}" "start" "--foreground"`);
    expect(text).toContain(`Environment="COMET_CC_HOME=${home.home}"`);
    expect(await home.json(['service', 'status', '--json'], { env })).toMatchObject({
      manager: 'systemd',
      file,
      installed: true,
      running: true,
      missing: '',
    });
    expect((await home.run(['service', 'install'], { env })).code).toBe(0);
    const removed = await home.run(['service', 'uninstall'], { env });
    expect(removed.stdout).toContain(`removed ${file}`);
    expect(await files()).toEqual([]);
    expect((await asked()).slice(-2)).toEqual(['--user disable --now comet-cc.service', '--user daemon-reload']);
  });

  it('leaves nothing behind when the manager refuses, and says what it said', async () => {
    const { env } = await fakeSystemctl('enable');
    const { code, stderr } = await home.run(['service', 'install'], { env });
    expect(code).toBe(1);
    expect(stderr).toContain('systemctl --user enable --now comet-cc.service failed (1) it is broken');
    expect(await files()).toEqual([]);
  });

  it("touches no stranger's unit of that name", async () => {
    const { env, asked } = await fakeSystemctl();
    const file = path.join(home.user, UNIT);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, '[Service]\nExecStart=/bin/true\n');
    for (const verb of ['install', 'uninstall']) {
      const { code, stderr } = await home.run(['service', verb], { env });
      expect(code).toBe(1);
      expect(stderr).toContain('was not created by comet-cc');
    }
    expect(await readFile(file, 'utf8')).toContain('/bin/true');
    expect(await asked()).toEqual(['--user show-environment']);
  });
});
