import { closeSync, openSync, readSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { reasonOf } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { clip, counted, isRecord, oneLine, parseJson } from '../../common/text.ts';
import type { StatusReport } from '../../engine/api/index.ts';
import { findEntries, inspectHooks } from '../../install/claude-code/index.ts';
import { type HookCommands, userSettingsFile } from '../../install/index.ts';
import { bad, type Check, good, unknown } from './index.ts';

const RECENT_MS = 600_000;
const READ_BYTES = 256 * 1024;
const TITLE_CHARS = 60;
const SESSION = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/;

/** Whether the hooks, by settings or as a plugin, and the status line are in Claude Code's settings. */
export async function checkIntegration(
  paths: HomePaths,
  env: NodeJS.ProcessEnv,
  commands: HookCommands,
): Promise<Check[]> {
  const file = userSettingsFile(env);
  try {
    const states = Object.values((await inspectHooks(file, commands)).events);
    const hasPlugin = (await findEntries(paths, 'plugin', [file])).length > 0;
    const hasLine = (await findEntries(paths, 'statusline', [file])).length > 0;
    const line = hasLine ? `in ${file}` : 'not set up; comet-cc statusline install shows one';
    return [hooksCheck(states, hasPlugin, file), good('statusline', line)];
  } catch (error) {
    return [bad('hooks', reasonOf(error), 'correct the file; Claude Code reads plain JSON')];
  }
}

function hooksCheck(states: readonly string[], hasPlugin: boolean, file: string): Check {
  if (states.includes('other') || (states.includes('installed') && states.includes('missing'))) {
    return bad('hooks', `${file} has hooks of another installation, or some only`, 'comet-cc hooks install');
  }
  const isInstalled = states.includes('installed');
  if (isInstalled && hasPlugin) return bad('hooks', 'installed twice, as a plugin too', 'comet-cc hooks uninstall');
  if (isInstalled) return good('hooks', `in ${file}`);
  return good('hooks', hasPlugin ? 'in the plugin' : 'neither hooks nor plugin are set up; comet-cc setup does it');
}

/** Whether the sessions that wrote a transcript lately sent their requests through the proxy. */
export async function checkSessions(
  env: NodeJS.ProcessEnv,
  report: StatusReport | null,
  nowMs: number,
): Promise<Check> {
  const active = await recentTranscripts(path.join(path.dirname(userSettingsFile(env)), 'projects'), nowMs);
  if (active.length === 0) return good('sessions', 'no session of Claude Code in the last 10 minutes');
  if (report?.engine.state !== 'healthy') return unknown('sessions', 'not known while no engine runs');
  const seen = new Set(report.sessions);
  const past = active.filter(({ id }) => !seen.has(id));
  const [first] = past;
  if (first === undefined) return good('sessions', `${counted(active.length, 'recent session')}, all through comet-cc`);
  const title = transcriptTitle(first.file);
  return bad(
    'sessions',
    `${past.length} of ${counted(active.length, 'recent session')} did not use comet-cc${title === '' ? '' : `: "${title}"`}`,
    `to keep it, end it and continue with comet-cc run claude --resume ${first.id}`,
  );
}

async function recentTranscripts(
  dir: string,
  nowMs: number,
): Promise<{ readonly id: string; readonly file: string }[]> {
  const found: { id: string; file: string }[] = [];
  for (const project of await readdir(dir).catch(() => [])) {
    for (const name of await readdir(path.join(dir, project)).catch(() => [])) {
      const id = SESSION.exec(name)?.[1];
      const file = path.join(dir, project, name);
      const changedMs =
        id === undefined
          ? 0
          : await stat(file).then(
              ({ mtimeMs }) => mtimeMs,
              () => 0,
            );
      if (id !== undefined && nowMs - changedMs < RECENT_MS) found.push({ id, file });
    }
  }
  return found;
}

/** Claude Code's own title of a session, else its first prompt; '' where neither can be read. */
export function transcriptTitle(file: string): string {
  const lines = readStart(file).split('\n').map(parseJson).filter(isRecord);
  const titles = lines.map(({ customTitle, aiTitle, summary }) => customTitle ?? aiTitle ?? summary);
  const prompts = lines.filter(({ type, isMeta }) => type === 'user' && isMeta !== true).map(promptOf);
  const title = titles.findLast((each) => typeof each === 'string') ?? prompts.find((prompt) => prompt !== '') ?? '';
  return clip(oneLine(String(title)), TITLE_CHARS);
}

function promptOf({ message }: Readonly<Record<string, unknown>>): string {
  const content = isRecord(message) ? message['content'] : '';
  const blocks: unknown[] = Array.isArray(content) ? content : [{ text: content }];
  const texts = blocks.map((block) => (isRecord(block) ? block['text'] : ''));
  return texts.find((text): text is string => typeof text === 'string' && !text.startsWith('<')) ?? '';
}

function readStart(file: string): string {
  try {
    const opened = openSync(file, 'r');
    try {
      const start = Buffer.alloc(READ_BYTES);
      return start.toString('utf8', 0, readSync(opened, start, 0, READ_BYTES, 0));
    } finally {
      closeSync(opened);
    }
  } catch {
    return ''; // Gone in the meantime, or not readable: the session has no title then.
  }
}
