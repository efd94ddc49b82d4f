import { createTerm, type Term } from '../../bin/terminal/term.ts';
import type { Config } from '../../common/config.ts';
import { type HomePaths, homeOf, homePaths } from '../../common/paths.ts';

/** What every command is given. Nothing is read or made until a command asks. */
export interface Context {
  readonly env: NodeJS.ProcessEnv;
  readonly paths: HomePaths;
  readonly term: Term;
  /** Validated configuration; a flag wins over the environment. @throws CometError `config_invalid` */
  config(flags?: Partial<Config>): Promise<Config>;
}

export function createContext(): Context {
  const env = process.env;
  return {
    env,
    paths: homePaths(homeOf(env)),
    term: createTerm(process.stdout, process.stderr, env),
    // The schema costs 70 ms to load, which commands that only ask the daemon do not pay.
    config: async (flags = {}) => (await import('../../common/config.ts')).loadConfig(env, flags).config,
  };
}
