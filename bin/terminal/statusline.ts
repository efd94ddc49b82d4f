import { once } from 'node:events';
import path from 'node:path';
import { styleText } from 'node:util';
import { clip, oneLine, parseJson, percentSaved, toRecord } from '../../common/text.ts';
import { engineClient } from '../../engine/api/client.ts';
import type { OperationInput, StatuslineView } from '../../engine/api/index.ts';
import type { Context } from '../context.ts';

const LONGEST_ID = 200;
const LONGEST_PATH = 4_096;
/** Claude Code runs it after every message and shows what it says: late is worse than nothing, unless told to wait. */
const LATE_MS = 100;
const STDIN_MS = 50;
const TITLE_CHARS = 32;

/** One line on stdout, from Claude Code's JSON on stdin; never fails. */
export async function printStatusline({ paths, env, term }: Pick<Context, 'paths' | 'env' | 'term'>): Promise<void> {
  const patienceMs = Number(env['COMET_CC_HOOK_MS']);
  const input = readStatusline(await stdin(patienceMs || STDIN_MS));
  const view = await engineClient(paths.engineSocket)
    .call('statusline', input, { timeoutMs: patienceMs || LATE_MS })
    .catch(({ code }: { code?: string }) => (code === 'daemon_down' ? null : undefined));
  // Claude Code shows colours although it reads from a pipe.
  term.out(statuslineText(view, !env['NO_COLOR']));
  // Nothing that still waits may keep the line from being shown.
  process.stdin.destroy();
}

/** What of Claude Code's JSON says which session and which project this is; whatever it cannot tell is left out. */
export function readStatusline(text: string): OperationInput<'statusline'> {
  const { session_id: id, cwd, workspace } = toRecord(parseJson(text));
  const { current_dir: current, project_dir: project } = toRecord(workspace);
  const dir = [project, current, cwd].find(
    (one): one is string => typeof one === 'string' && one.length <= LONGEST_PATH && path.isAbsolute(one),
  );
  return {
    ...(typeof id === 'string' && id !== '' && id.length <= LONGEST_ID ? { sessionId: id } : {}),
    ...(dir === undefined ? {} : { projectDir: dir }),
  };
}

/** `memory: 12 kept · recalled "staging port" · −27 % context`; null: no daemon runs; undefined: it gave no answer in time. */
export function statuslineText(view: StatuslineView | null | undefined, colored: boolean): string {
  const paint = (style: 'green' | 'yellow' | 'dim', text: string): string =>
    colored ? styleText(style, text, { validateStream: false }) : text;
  if (!view)
    return paint('dim', `memory: ${view === null ? 'off, comet-cc is not running' : 'no answer, see comet-cc status'}`);
  const { mode, nodes, due = [], trimming_off, request } = view;
  const heads = { on: 'memory:', private: 'memory (keeps nothing):', off: 'memory paused:' } as const;
  const title = clip(oneLine(request?.recalled ?? ''), TITLE_CHARS);
  const percent = request ? percentSaved(request.received, request.sent) : 0;
  const parts = [
    `${paint(mode === 'on' ? 'green' : 'yellow', heads[mode])} ${nodes.toLocaleString('en-US')} kept`,
    ...(title === '' ? [] : [`recalled "${title}"`]),
    ...(percent === 0 ? [] : [`${percent > 0 ? '−' : '+'}${Math.abs(percent)} % context`]),
    ...(due[0] === undefined
      ? []
      : [paint('yellow', `due: ${clip(oneLine(due[0]), TITLE_CHARS)}${due.length > 1 ? ` +${due.length - 1}` : ''}`)]),
    ...(trimming_off ? [paint('yellow', 'trimming off, see comet-cc status')] : []),
  ];
  return parts.join(paint('dim', ' · '));
}

async function stdin(timeoutMs: number): Promise<string> {
  if (process.stdin.isTTY) return '';
  const chunks: Buffer[] = [];
  process.stdin.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(process.stdin, 'end', { signal: AbortSignal.timeout(timeoutMs) }).catch(() => undefined);
  return Buffer.concat(chunks).toString('utf8');
}
