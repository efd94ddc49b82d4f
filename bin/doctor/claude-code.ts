import { stat } from 'node:fs/promises';
import { getReason } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { formatCount } from '../../common/text.ts';
import type { StatusReport } from '../../engine/api/index.ts';
import { transcripts, transcriptTitle } from '../../engine/transcript/index.ts';
import { findEntries, inspectHooks } from '../../install/claude-code/index.ts';
import { claudeDirectory, type HookCommands, userSettingsFile } from '../../install/index.ts';
import { bad, type Check, good, unknown } from './index.ts';

const RECENT_MS = 600_000;

/** Whether the hooks, by settings or as a plugin, and the status line are in Claude Code's settings. */
export async function checkIntegration(paths: HomePaths, env: NodeJS.ProcessEnv, commands: HookCommands) {
  const file = userSettingsFile(env);
  try {
    const states = Object.values((await inspectHooks(file, commands)).events);
    const hasPlugin = (await findEntries(paths, 'plugin', [file])).length > 0;
    const hasLine = (await findEntries(paths, 'statusline', [file])).length > 0;
    const line = hasLine ? `in ${file}` : 'not set up; comet-cc statusline install shows one';
    return [hooksCheck(states, hasPlugin, file), good('statusline', line)];
  } catch (error) {
    return [bad('hooks', getReason(error), 'correct the file; Claude Code reads plain JSON')];
  }
}

function hooksCheck(states: readonly string[], hasPlugin: boolean, file: string): Check {
  if (states.includes('other') || (states.includes('installed') && states.includes('missing')))
    return bad('hooks', `${file} has hooks of another installation, or some only`, 'comet-cc hooks install');
  const isInstalled = states.includes('installed');
  if (isInstalled && hasPlugin) return bad('hooks', 'installed twice, as a plugin too', 'comet-cc hooks uninstall');
  if (isInstalled) return good('hooks', `in ${file}`);
  return good('hooks', hasPlugin ? 'in the plugin' : 'neither hooks nor plugin are set up; comet-cc setup does it');
}

/**
 * Whether the sessions that wrote a transcript lately sent their requests through the proxy.
 * @param isExpected  settings or this shell send every session through it, so that one beside it is a problem
 */
export async function checkSessions(
  env: NodeJS.ProcessEnv,
  report: StatusReport | null,
  nowMs: number,
  isExpected: boolean,
): Promise<Check> {
  const active = await recentTranscripts(claudeDirectory(env), nowMs);
  if (active.length === 0) return good('sessions', 'no session of Claude Code in the last 10 minutes');
  if (report?.engine.state !== 'healthy') return unknown('sessions', 'not known while no engine runs');
  const seen = new Set(report.sessions);
  const past = active.filter(({ id }) => !seen.has(id));
  const [first] = past;
  if (first === undefined)
    return good('sessions', `${formatCount(active.length, 'recent session')}, all through comet-cc`);
  const title = await transcriptTitle(first.file);
  const detail = `${past.length} of ${formatCount(active.length, 'recent session')} did not use comet-cc${title === '' ? '' : `: "${title}"`}`;
  const resume = `comet-cc run claude --resume ${first.id}`;
  if (!isExpected) return good('sessions', `${detail}; ${resume} continues it with memory`);
  return bad('sessions', detail, `to keep it, end it and continue with ${resume}`);
}

async function recentTranscripts(claudeDir: string, nowMs: number) {
  const all = await transcripts(claudeDir);
  const changes = await Promise.all(all.map(({ file }) => stat(file).catch(() => null)));
  return all.filter((_, at) => nowMs - (changes[at]?.mtimeMs ?? 0) < RECENT_MS);
}
