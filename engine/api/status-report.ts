import type { Problem } from '../../common/errors.ts';
import { VERSION } from '../../common/paths.ts';
import { formatCount, localTime, oneLine } from '../../common/text.ts';
import { IDLE_MEMORY, idleModel } from '../deferred.ts';
import { type GuardStatus, otherBuild } from '../lifecycle/control.ts';
import type { Context } from '../lifecycle/daemon.ts';
import type { Pause, Pauses } from '../policy/pause.ts';
import { engineClient } from './client.ts';
import { EMPTY_COSTS } from './cost.ts';
import type { EngineStatus, ModelBudget } from './service.ts';

export { guardStatus } from '../lifecycle/control.ts';
export { savedLine } from './cost.ts';
export { endLine, offerLine, startLine } from './summary.ts';

export type StatusReport = Awaited<ReturnType<typeof statusReport>>;

const ENGINE_MS = 2_000;
/** Limit for the lines at the start and end of a session; a busy machine needs more than `ENGINE_MS`. */
const PROJECT_MS = 5_000;
/** Spelled out where it can be: every command loads this file. */
const EMPTY_STATUS = {
  requests: { total: 0, rewritten: 0, passed_through: 0, failed_open: 0 },
  recalls: {
    asked: 0,
    in_time: 0,
    late_delivered: 0,
    late_empty: 0,
    late_lost: 0,
    late_waiting: 0,
    failed: 0,
    others_missed: 0,
  },
  ...EMPTY_COSTS,
  context: null,
  cuts: { count: 0, newest: null },
  sessions: [],
  budget: { daily_tokens: 0, session_tokens: 0, sessions: [] } as ModelBudget,
  environment: [],
  share: null,
  ...IDLE_MEMORY,
  paused: { past: [], everywhere: null, projects: {} } as Pauses,
  problems: [] as readonly Problem[],
};
const FIELDS = [...(Object.keys(EMPTY_STATUS) as (keyof typeof EMPTY_STATUS)[]), 'llm'] as const;
const SILENT = { file: 'engine', message: 'no answer in time, so its counts are unknown; ask again' };

/** One line for variables that override settings, and the way out; '' for none. */
export function overrideLine({ environment }: { readonly environment: readonly string[] }): string {
  const [first, ...more] = environment;
  if (first === undefined) return '';
  const names = more.length === 0 ? first : `${first} and ${formatCount(more.length, 'more variable')}`;
  const all = more.length === 0 ? `unset ${first}` : 'unset them (comet-cc status --long names them)';
  return `${names} of the shell that started it override${more.length === 0 ? 's' : ''} config.json; to end that: ${all}, then comet-cc restart`;
}

/** What the engine has of a project; null where it cannot be asked now. @param begins  whether a session begins there */
export async function askProject({ paths }: Pick<Context, 'paths'>, projectDir: string, begins = false) {
  const input = { projectDir, begins };
  const call = engineClient(paths.engineSocket).call('project/summary', input, { timeoutMs: PROJECT_MS });
  return await call.catch(() => null);
}

/** Of `start --json` and `status --json`: guard and engine, with zeros where only a healthy engine could tell. */
export async function statusReport(context: Context, guard: GuardStatus | null) {
  // One that passes sessions through has no memory.
  const daemon = guard?.pass_through ? null : guard;
  const { upstream, llm, port } =
    daemon === null ? await context.config() : { ...daemon, llm: context.env['COMET_CC_LLM'] ?? '' };
  const healthy = daemon?.engine.state === 'healthy';
  const call = healthy ? engineClient(context.paths.engineSocket).call('status', {}, { timeoutMs: ENGINE_MS }) : null;
  const engine: EngineStatus | null = (await call?.catch(() => null)) ?? null;
  // A daemon of another build may lack some fields.
  const budget = { ...EMPTY_STATUS.budget, ...engine?.budget };
  const status = { ...EMPTY_STATUS, ...engine, budget, llm: { ...idleModel(llm), ...engine?.llm } };
  const proxyPort = guard?.port ?? port;
  return {
    running: daemon !== null,
    pid: daemon?.pid ?? null,
    version: engine?.version ?? daemon?.version ?? VERSION,
    proxy: { url: `http://127.0.0.1:${proxyPort}`, port: proxyPort },
    engine: daemon?.engine ?? { state: 'stopped', pid: null, restarts: 0 },
    upstream,
    uptime_ms: daemon?.uptime_ms ?? 0,
    ...(Object.fromEntries(FIELDS.map((name) => [name, status[name]])) as Pick<typeof status, (typeof FIELDS)[number]>),
    problems: engine === null && healthy ? [SILENT, ...status.problems] : status.problems,
    tunnels: guard?.tunnels ?? { open: 0, total: 0, failed_open: 0, bypassing: 0 },
    /** Set while memory is stopped and sessions still use the port. */
    pass_through: guard?.pass_through ?? null,
    /** Why the daemon needs a restart to run this build, '' when it does not. */
    other_build: daemon === null ? '' : otherBuild(daemon),
  };
}

export function stoppedLine({ pass_through: used, proxy }: Pick<StatusReport, 'pass_through' | 'proxy'>): string {
  if (used === null) return 'comet-cc is not running; start it with: comet-cc start';
  const { sessions, connections } = used;
  const next = '(comet-cc stop --now closes it at once; comet-cc start brings memory back)';
  if (sessions + connections === 0)
    return `memory is off; port ${proxy.port}, used within the last hour, stays open for sessions that wait ${next}`;
  const what = sessions > 0 ? formatCount(sessions, 'session') : formatCount(connections, 'connection');
  const verb = (sessions || connections) === 1 ? 'passes' : 'pass';
  return `memory is off; ${what} still ${verb} through port ${proxy.port}, which closes after the last one ${next}`;
}

export function pauseLines({ everywhere, projects }: Pauses): string[] {
  return [
    ...(everywhere === null ? [] : [pauseLine('everywhere', everywhere)]),
    ...Object.entries(projects).map(([project, pause]) => pauseLine(`in ${oneLine(project)}`, pause)),
  ];
}

function pauseLine(where: string, { mode, until }: Pause): string {
  const what = mode === 'off' ? 'memory is paused' : 'capture is off';
  const end = until === null ? 'until comet-cc resume' : `until ${localTime(Date.parse(until), Date.now())}`;
  return `${what} ${where}, ${end}`;
}
