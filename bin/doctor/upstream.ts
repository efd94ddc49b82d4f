import { access, constants } from 'node:fs/promises';
import type { Config } from '../../common/config.ts';
import { oneLine } from '../../common/text.ts';
import { type GuardStatus, noProxyCovers, otherProxy } from '../../engine/lifecycle/index.ts';
import { bad, type Check, good } from './index.ts';

const VERSION_MS = 10_000;

export async function checkClaude(bin: string, env: NodeJS.ProcessEnv): Promise<Check> {
  const { runChild } = await import('../../common/run-process.ts');
  const run = { file: bin, args: ['--version'], input: '', env, timeoutMs: VERSION_MS, graceMs: 0 };
  const { how, exitCode, stdout } = await runChild(run);
  if (how === 'exited' && exitCode === 0) return good('claude', `${bin}: ${oneLine(stdout)}`);
  const failed = how === 'timeout' ? `did not answer within ${VERSION_MS / 1_000} s` : `failed (${exitCode})`;
  const detail = how === 'missing' ? `${bin} was not found` : `${bin} --version ${failed}`;
  return bad('claude', detail, 'install Claude Code, or set COMET_CC_CLAUDE_BIN to where it is');
}

/** Only what can be said without contacting anyone. @param env  as Claude Code has it */
export async function checkUpstream(config: Config, env: NodeJS.ProcessEnv, guard: GuardStatus | null, failed = '') {
  const { upstreamCa: ca } = config;
  if (ca !== '' && (await access(ca, constants.R_OK).catch(() => 'refused')) === 'refused')
    return bad('upstream', `${ca} cannot be read`, 'correct upstreamCa (COMET_CC_UPSTREAM_CA)');
  if (noProxyCovers(env, 'api.anthropic.com'))
    return bad('upstream', 'NO_PROXY covers api.anthropic.com', "take it out, in the shell or Claude Code's settings");
  const trouble = guard?.upstream_proxy_trouble ?? '';
  if (trouble !== '') return bad('upstream', trouble, 'correct HTTPS_PROXY (or upstreamProxy), then comet-cc restart');
  if (failed !== '')
    return bad('upstream', failed, 'check the network; after a change of proxy or CA, comet-cc restart');
  const rival = guard === null ? '' : otherProxy(guard, config, env);
  if (rival !== '') return bad('upstream', rival, 'comet-cc restart');
  return good('upstream', [config.upstream, guard?.upstream_proxy].filter(Boolean).join(' through '));
}
