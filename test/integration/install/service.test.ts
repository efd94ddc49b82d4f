import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { homePaths } from '../../../common/paths.ts';
import { installService, planService, type ServicePlan } from '../../../install/service/index.ts';
import { tempDirs } from '../../helpers/temp-dir.ts';

const tempDir = tempDirs();
afterEach(() => vi.unstubAllEnvs());

/** Refuses, as launchd does, a service that it has. */
const LAUNCHCTL = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
case "$*" in
  'print gui/501') ;;
  print*) test -e loaded ;;
  bootout*) rm loaded ;;
  bootstrap*) if test -e loaded; then echo 'Bootstrap failed: 5: Input/output error' >&2; exit 5; fi; touch loaded ;;
esac
`;

it('a service that launchd has is registered again, and left alone while its daemon runs', async () => {
  const [bin, dir] = [await tempDir(), await tempDir()];
  await writeFile(path.join(bin, 'launchctl'), LAUNCHCTL, { mode: 0o700 });
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
  const getPlan = (node: string): ServicePlan => {
    const names = { platform: 'darwin', script: '/x.js', home: dir, userHome: dir, configHome: dir } as const;
    return planService({ ...names, node, uid: 501, searchPath: '/bin', claudeDir: '' }) as ServicePlan;
  };
  const install = async (node: string, isRunning: boolean): Promise<string[]> => {
    const lines: string[] = [];
    const plan = getPlan(node);
    await installService(homePaths(dir), plan, (line) => lines.push(line), isRunning);
    expect(await readFile(plan.file, 'utf8')).toContain(node);
    return lines.flatMap((line) => /^\$ launchctl (\w+)/.exec(line)?.[1] ?? []);
  };
  expect(await install('/node-1', false)).toEqual(['bootstrap']);
  expect(await install('/node-2', false)).toEqual(['bootout', 'bootstrap']);
  expect(await install('/node-3', true)).toEqual([]);
});
