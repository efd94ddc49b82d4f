import { loadConfig, writeSetting } from '../common/config.ts';
import type { ShareSettings } from '../memory/index.ts';
import type { Policy } from './policy/index.ts';

/** Settings of `share` are read each time, so that `comet-cc share` needs no restart. */
export function shareOptions(env: NodeJS.ProcessEnv, { keepsHere }: Policy) {
  return {
    settings(): ShareSettings {
      const { projects, trust, ...others } = loadConfig(env).config.share;
      return { ...others, projects: listed(projects), trusted: listed(trust) };
    },
    isForbidden: keepsHere,
    async keepSettings({ url, scope, projects, trusted, name }: Partial<ShareSettings>): Promise<void> {
      const changed = { url, scope, name, projects: projects?.join(','), trust: trusted?.join(',') };
      for (const [key, value] of Object.entries(changed))
        if (value !== undefined) await writeSetting(env, `share.${key}`, value);
    },
  };
}

function listed(text: string): string[] {
  return text.split(/[\s,]+/).filter((each) => each !== '');
}
