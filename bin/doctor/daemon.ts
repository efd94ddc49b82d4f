import net from 'node:net';
import { CometError } from '../../common/errors.ts';
import { type HomePaths, VERSION } from '../../common/paths.ts';
import { formatCount } from '../../common/text.ts';
import type { StatusReport } from '../../engine/api/index.ts';
import { OPENING, STORE } from '../../engine/index.ts';
import { type GuardStatus, guardStatus, portNonce, waitHealthy } from '../../engine/lifecycle/index.ts';
import { bad, type Check, good, unknown } from './index.ts';

/** An engine that starts or restarts gets so long: it usually needs less. */
const STARTING_MS = 5_000;

/** The guard of this home, or why none can be asked. */
export async function askedGuard(paths: HomePaths): Promise<{ guard: GuardStatus | null; problem: string }> {
  try {
    const guard = await guardStatus(paths.guardSocket);
    const isPending = guard !== null && ['starting', 'late', 'backoff'].includes(guard.engine.state);
    return { guard: isPending ? await waitHealthy(paths.guardSocket, STARTING_MS) : guard, problem: '' };
  } catch (error) {
    if (!(error instanceof CometError)) throw error;
    return { guard: null, problem: error.message };
  }
}

/** Port and nonce together are the daemon's identity; both have to come from the same process. */
export async function checkPort(guard: GuardStatus | null, port: number, token: string | null): Promise<Check> {
  if (guard === null) {
    if (port === 0 || !(await isTaken(port))) return good('port', `port ${port} is free`);
    return bad('port', `port ${port} is used by another program`, 'set another one: comet-cc config set port N');
  }
  if (token !== null && (await portNonce(guard.port, token)) === guard.nonce)
    return good('port', `port ${guard.port} is the daemon's`);
  return bad('port', `port ${guard.port} does not answer as our daemon does`, 'comet-cc restart');
}

export function checkEngine(report: StatusReport | null, problem: string): Check {
  if (report === null || !report.running) {
    const off = report?.pass_through ? 'memory is off, and open sessions pass through' : 'the daemon is not running';
    return bad('engine', problem === '' ? off : problem, 'comet-cc start');
  }
  const { state, restarts } = report.engine;
  if (state === 'healthy') return good('engine', `healthy, ${formatCount(restarts, 'restart')}`);
  if (state === 'crash_loop') {
    const detail = `crash loop: it ended ${formatCount(restarts, 'time')}; requests go past it`;
    return bad('engine', detail, 'see comet-cc logs, then comet-cc restart');
  }
  return bad('engine', `${state} for more than 5 s; requests go past it`, 'comet-cc restart; comet-cc logs says why');
}

export function checkBuild(report: StatusReport | null): Check {
  const difference = report?.other_build ?? '';
  return difference === '' ? good('build', `comet-cc ${VERSION}`) : bad('build', difference, 'comet-cc restart');
}

const FIXES: Readonly<Record<string, string>> = {
  [STORE]: 'fix that, then run comet-cc restart',
  embedder: 'install or start what it needs, then run comet-cc restart',
  client: 'another version of comet-cc may know this client; its sessions are remembered, each for itself',
  share: 'comet-cc share pull tries again, with the credentials of your shell; sessions go on without it',
  turn: 'everything is kept: comet-cc memory restore SESSION prints it, another version of comet-cc tries it again, comet-cc memory forget --session SESSION removes it',
  index:
    'check space and permissions: once the index is rebuilt, recall is back; comet-cc memory reindex tries at once',
};

export function checkStore(report: StatusReport | null): Check {
  if (report === null || report.engine.state !== 'healthy') return unknown('store', 'not known while no engine runs');
  const { reindex } = report;
  const all = report.problems.filter(({ file }) => file !== 'upstream');
  const problems = all.filter(({ file }) => file !== 'engine' && (file !== 'index' || reindex === null));
  if (reindex !== null && problems.length === 0) {
    const total = formatCount(reindex.total, 'memory', 'memories');
    return good('store', `the index is being rebuilt: ${reindex.done} of ${total}`);
  }
  if (problems.length < all.length) return unknown('store', 'the engine gave no answer in time; ask again');
  if (problems.some(({ message }) => message === OPENING)) return unknown('store', `${OPENING}; ask again`);
  const held = `${formatCount(report.nodes, 'memory', 'memories')}, no problem found`;
  if (problems.length === 0) return good('store', held);
  const named = problems.slice(0, 5).map(({ file, message }) => `${file}: ${message}`);
  const more = problems.length > 5 ? `; and ${problems.length - 5} more` : '';
  const fixes = [...new Set(problems.flatMap(({ file }) => FIXES[file] ?? []))].join('; ');
  return bad('store', named.join('; ') + more, fixes || 'fix the named files; the rest works');
}

export function checkModel(report: StatusReport | null): Check {
  const error = report?.llm.last_error ?? '';
  if (report === null || report.engine.state !== 'healthy') return unknown('model', 'not known while no engine runs');
  if (error === '') return good('model', 'the last model call did not fail');
  if (/^(rate_limited|timeout)\b/.test(error)) return good('model', `${error}; it is tried again by itself`);
  const another = 'it is asked again later; if it stays, set another model: comet-cc config --all shows them';
  if (/^(?:unstructured|failed: (?:no JSON|the answer))/.test(error)) return bad('model', error, another);
  if (report.llm.backend === 'openai')
    return bad('model', error, 'correct openai.baseUrl, model, keyEnv or keyCommand, then comet-cc restart');
  const own = 'claude -p "hello" shows the error; until it answers, memories are written without the model';
  return bad('model', error, /log(ged)?[ _-]?(in|out)/i.test(error) ? 'run claude once and log in' : own);
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.once('error', () => resolve(true));
    probe.listen({ port, host: '127.0.0.1' }, () => probe.close(() => resolve(false)));
  });
}
