import path from 'node:path';
import { systemClock } from '../common/clock.ts';
import type { Config } from '../common/config.ts';
import { ensureDir } from '../common/files.ts';
import type { Log } from '../common/log.ts';
import type { HomePaths } from '../common/paths.ts';
import type { Redactor } from '../common/redact.ts';
import type { Memory } from '../memory/face.ts';
import type { LanguageModel } from '../memory/ports.ts';
import { PROXY_NAMES } from './environment.ts';

export interface MemoryParts {
  readonly env: NodeJS.ProcessEnv;
  readonly config: Config;
  readonly paths: HomePaths;
  readonly redactor: Redactor;
  readonly log: Log;
}

/**
 * Journal, files, index, models and recall, joined. Everything is loaded here and not before: a native part that
 * does not load on this machine must cost memory, never the proxy.
 */
export async function openMemory(parts: MemoryParts): Promise<Memory> {
  const { createMemory } = await import('../memory/index.ts');
  throw new Error(String(createMemory));
}

async function languageModel({ env, config, paths, redactor, log }: MemoryParts): Promise<LanguageModel | null> {
  if (config.llm !== 'claude') return null;
  const { createClaudeCli } = await import('../memory/adapters/claude-cli.ts');
  const { bundleFile, userCaFile } = await import('../certs/bundle.ts');
  const cwd = path.join(paths.runDir, 'model');
  await ensureDir(cwd);
  return createClaudeCli({
    bin: config.claudeBin,
    models: config.models,
    environment: {
      env,
      bundleFile: bundleFile(paths.certsDir),
      userCa: (await userCaFile(paths)) ?? '',
      // Ours were taken out when the daemon was started: what is left is the user's own.
      userProxy: Object.fromEntries(PROXY_NAMES.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
    },
    cwd,
    redact: redactor.text,
    now: systemClock.now,
    log,
  });
}
