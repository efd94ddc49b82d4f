import { statSync } from 'node:fs';
import { loadConfig, writeSetting } from '../common/config.ts';
import type { HomePaths } from '../common/paths.ts';
import type { ShareSettings } from '../memory/index.ts';
import type { Policy } from './policy/index.ts';

/** Settings of `share` hold as soon as they are in the file, so that `comet-cc share` needs no restart. */
export function shareOptions(
  env: NodeJS.ProcessEnv,
  { configFile }: Pick<HomePaths, 'configFile'>,
  { keepsHere }: Pick<Policy, 'keepsHere'>,
) {
  let latest: { readonly stamp: string; readonly settings: ShareSettings } | null = null;
  return {
    settings(): ShareSettings {
      const stats = statSync(configFile, { throwIfNoEntry: false });
      const stamp = `${stats?.ino} ${stats?.mtimeMs} ${stats?.size}`;
      if (latest?.stamp !== stamp) latest = { stamp, settings: readSettings(env) };
      return latest.settings;
    },
    isForbidden: keepsHere,
    async keepSettings({ url, scope, projects, trusted, name }: Partial<ShareSettings>): Promise<void> {
      const changed = { url, scope, name, projects: projects?.join(','), trust: trusted?.join(',') };
      for (const [key, value] of Object.entries(changed))
        if (value !== undefined) await writeSetting(env, `share.${key}`, value, true);
    },
  };
}

function readSettings(env: NodeJS.ProcessEnv): ShareSettings {
  const { projects, trust, raw, ...others } = loadConfig(env).config.share;
  return { ...others, raw: raw === 'on', projects: listed(projects), trusted: listed(trust) };
}

const listed = (text: string): string[] => text.split(/[\s,]+/).filter((each) => each !== '');
