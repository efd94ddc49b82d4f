import type { Config } from '../../common/config.ts';
import type { HomePaths } from '../../common/paths.ts';

/** What starts and asks the daemon. Nothing is read or created before it is needed. */
export interface Context {
  readonly env: NodeJS.ProcessEnv;
  readonly paths: HomePaths;
  /** For messages to the user. */
  readonly term: { say(text: string): void };
  /** Validated configuration; a flag overrides the environment. @throws CometError `config_invalid` */
  config(flags?: Partial<Config>): Promise<Config>;
}
