import { VERSION } from '../../common/paths.ts';
import { oneLine } from '../../common/text.ts';
import { idleModel } from '../deferred.ts';
import { type GuardStatus, otherBuild } from '../lifecycle/control.ts';
import type { Context } from '../lifecycle/daemon.ts';
import type { Pause, Pauses } from '../policy/pause.ts';
import { engineClient } from './client.ts';
import type { EngineStatus } from './contract.ts';
import { type Costs, EMPTY_COSTS } from './cost.ts';

export { guardStatus } from '../lifecycle/control.ts';
export { savedLine } from './cost.ts';

/** The document of `start --json` and `status --json`. */
export interface StatusReport
  extends Costs,
    Pick<
      EngineStatus,
      'version' | 'requests' | 'queue' | 'llm' | 'nodes' | 'paused' | 'problems' | 'reindex' | 'dream'
    > {
  readonly running: boolean;
  readonly pid: number | null;
  readonly proxy: { readonly url: string; readonly port: number };
  readonly engine: GuardStatus['engine'];
  readonly upstream: string;
  readonly uptime_ms: number;
  readonly tunnels: GuardStatus['tunnels'];
  /** Why the daemon runs other code than this process, '' when it does not. */
  readonly other_build: string;
}

const ENGINE_MS = 2_000;
/** Spelled out where it can be: every command loads this file. */
const EMPTY_STATUS = {
  requests: { total: 0, rewritten: 0, passed_through: 0, failed_open: 0 },
  ...EMPTY_COSTS,
  queue: { sensor: 0, compacter: 0, indexer: 0 },
  nodes: 0,
  reindex: null,
  dream: null,
  paused: { past: [], everywhere: null, projects: {} },
  problems: [],
};
const FIELDS = [...(Object.keys(EMPTY_STATUS) as (keyof typeof EMPTY_STATUS)[]), 'llm'] as const;
const SILENT = { file: 'engine', message: 'no answer in time, so its counts are unknown; ask again' };

/** The status of guard and engine; zeros where only a healthy engine could tell. */
export async function statusReport(context: Context, guard: GuardStatus | null): Promise<StatusReport> {
  if (guard === null) return await stoppedReport(context);
  const engine = guard.engine.state === 'healthy' ? await engineStatus(context) : null;
  const silent = engine === null && guard.engine.state === 'healthy';
  // A daemon of another build may lack some fields.
  const idle = idleModel(context.env['COMET_CC_LLM'] ?? '');
  const known = { ...EMPTY_STATUS, ...engine, llm: { ...idle, ...engine?.llm } };
  return {
    running: true,
    pid: guard.pid,
    version: guard.version,
    proxy: proxyAt(guard.port),
    engine: guard.engine,
    upstream: guard.upstream,
    uptime_ms: guard.uptime_ms,
    ...(Object.fromEntries(FIELDS.map((name) => [name, known[name]])) as Pick<typeof known, (typeof FIELDS)[number]>),
    problems: silent ? [SILENT, ...known.problems] : known.problems,
    tunnels: guard.tunnels,
    other_build: otherBuild(guard, Date.now()),
  };
}

async function stoppedReport(context: Context): Promise<StatusReport> {
  const config = await context.config();
  return {
    running: false,
    pid: null,
    version: VERSION,
    proxy: proxyAt(config.port),
    engine: { state: 'stopped', pid: null, restarts: 0 },
    upstream: config.upstream,
    uptime_ms: 0,
    ...EMPTY_STATUS,
    llm: idleModel(config.llm),
    tunnels: { open: 0, total: 0, failed_open: 0 },
    other_build: '',
  };
}

/** Null when the engine does not answer. */
async function engineStatus(context: Context): Promise<EngineStatus | null> {
  const call = engineClient(context.paths.engineSocket).call('status', {}, { timeoutMs: ENGINE_MS });
  return await call.catch(() => null);
}

function proxyAt(port: number): { url: string; port: number } {
  return { url: `http://127.0.0.1:${port}`, port };
}

/** A line for each active pause. */
export function pauseLines({ everywhere, projects }: Pauses): string[] {
  return [
    ...(everywhere === null ? [] : [pauseLine('everywhere', everywhere)]),
    ...Object.entries(projects).map(([project, pause]) => pauseLine(`in ${oneLine(project)}`, pause)),
  ];
}

function pauseLine(where: string, { mode, until }: Pause): string {
  const what = mode === 'off' ? 'memory is paused' : 'capture is off';
  const end = until === null ? 'until comet-cc resume' : `until ${until.slice(0, 16).replace('T', ' ')} UTC`;
  return `${what} ${where}, ${end}`;
}
