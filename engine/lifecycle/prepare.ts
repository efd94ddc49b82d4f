import { randomBytes } from 'node:crypto';
import { ensureCerts, userCaFile } from '../../certs/index.ts';
import type { Config } from '../../common/config.ts';
import { ensureDir, readOrCreateSecret } from '../../common/files.ts';
import type { HomePaths } from '../../common/paths.ts';
import { type ProxyAccess, withoutOurs } from './client-env.ts';
import type { DaemonSetup } from './daemon.ts';
import { STRAIGHT, userProxy } from './user-proxy.ts';

/** The environment of a command. Nothing is read or created before it is needed. */
export interface Context {
  readonly env: NodeJS.ProcessEnv;
  readonly paths: HomePaths;
  /** For messages to the user. */
  readonly term: { say(text: string): void };
  /** Validated configuration; a flag overrides the environment. @throws CometError `config_invalid` */
  config(flags?: Partial<Config>): Promise<Config>;
}

/** Creates certificates, bundle and token where they are missing. */
export async function prepareAccess(context: Context): Promise<Omit<ProxyAccess, 'port'>> {
  const { paths, env, term } = context;
  const certs = await ensureCerts(paths, {
    nowMs: Date.now(),
    userExtraCaFile: env['NODE_EXTRA_CA_CERTS'] || null,
  });
  for (const problem of certs.bundle.problems) term.say(`comet-cc: ${problem}`);
  await ensureDir(paths.runDir);
  return { token: await proxyToken(paths), bundle: certs.bundle.file };
}

/**
 * The token that the proxy requires of its clients: 256 bits as base64url, created on first use.
 *
 * @throws CometError `unsafe_file` when its file is not private
 */
export async function proxyToken(paths: HomePaths): Promise<string> {
  return readOrCreateSecret(paths.proxyTokenFile, () => randomBytes(32).toString('base64url'));
}

/** Prepares a start: configuration, folders, certificates, and the daemon's environment. */
export async function prepareDaemon(context: Context, flags: Partial<Config>): Promise<DaemonSetup> {
  const { paths } = context;
  const config = await context.config(flags);
  const { token, bundle } = await prepareAccess(context);
  await ensureDir(paths.logsDir);
  // A daemon that inherits our proxy variables would connect to itself.
  const userCa = await userCaFile(paths);
  const env = withoutOurs(context.env, bundle, userCa);
  const { url, noProxy, problem } = await userProxy(paths, config, context.env);
  if (problem !== '') context.term.say(`comet-cc: ${problem}`);
  return {
    paths,
    port: config.port,
    startMs: config.startMs,
    token,
    bundle,
    env: {
      ...env,
      // Also for the claude -p children, which use the user's own proxy.
      ...(url === '' ? {} : { HTTPS_PROXY: url, NO_PROXY: noProxy, no_proxy: noProxy }),
      ...(userCa === null || env['NODE_EXTRA_CA_CERTS'] ? {} : { NODE_EXTRA_CA_CERTS: userCa }),
      COMET_CC_HOME: paths.home,
      COMET_CC_PORT: String(config.port),
      COMET_CC_HOLD_MS: String(config.holdMs),
      COMET_CC_UPSTREAM: config.upstream,
      COMET_CC_UPSTREAM_CA: config.upstreamCa,
      COMET_CC_UPSTREAM_PROXY: url === '' ? STRAIGHT : url,
    },
  };
}
