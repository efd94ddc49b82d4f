import { homeOf, homePaths } from '../common/paths.ts';
import type { Context as EngineContext } from '../engine/lifecycle/index.ts';
import { createTerm, type Term } from './terminal/term.ts';

/** What every command is given. */
export interface Context extends EngineContext {
  readonly term: Term;
}

export function createContext(): Context {
  const env = process.env;
  return {
    env,
    paths: homePaths(homeOf(env)),
    term: createTerm(process.stdout, process.stderr, env),
    // The schema takes 70 ms to load; commands that only ask the daemon do not need it.
    config: async (flags = {}) => (await import('../common/config.ts')).loadConfig(env, flags).config,
  };
}
