import { CometError, type ErrorCode, getOnly } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { postLocal } from '../../common/request.ts';
import { isRecord, parseJson } from '../../common/text.ts';
import { socketPresent, waitHealthy } from '../lifecycle/control.ts';
import type { Operation, OperationInput, OperationResults } from './contract.ts';

export type EngineClient = ReturnType<typeof engineClient>;

const TIMEOUT_MS = 30_000;
const LONG_MS = 12 * 3_600_000;
/** They read or write all of memory, or wait for storage elsewhere. */
const LONG: ReadonlySet<string> = new Set<Operation>([
  ...(['memory/import', 'memory/import-claude', 'memory/export', 'memory/dream', 'memory/reindex'] as const),
  ...(['nodes/forget', 'snapshots/rollback', 'share/look', 'share/join', 'share/leave'] as const),
  ...(['share/preview', 'share/push', 'share/pull'] as const),
]);
const PATIENCE_MS = 15_000;

export function engineClient(socket: string) {
  return {
    /**
     * @throws CometError `daemon_down` when no engine listens, `daemon_unhealthy` when it gives no answer in time,
     *         or the error that the engine answered with
     */
    async call<K extends Operation>(
      operation: K,
      input: OperationInput<K>,
      {
        timeoutMs = LONG.has(operation) ? LONG_MS : TIMEOUT_MS,
        signal,
      }: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
    ): Promise<OperationResults[K]> {
      if (!(await socketPresent(socket))) throw down();
      const late = AbortSignal.timeout(timeoutMs);
      const over = signal === undefined ? late : AbortSignal.any([late, signal]);
      const request = { path: `/v1/${operation}`, body: JSON.stringify(input), signal: over };
      // Node 20 collects a timeout in `AbortSignal.any` that nothing else refers to, and it never fires.
      const fail = (error: unknown) => Promise.reject(translated(late.aborted ? late.reason : error));
      return unwrapped(await postLocal(socket, request).catch(fail)) as OperationResults[K];
    },
  };
}

/**
 * The engine's API as commands use it: calls wait for an engine that is (re)starting.
 * @throws from `call`: CometError `daemon_down` when no daemon runs, `daemon_unhealthy` when only its engine does not
 */
export function getEngine(paths: HomePaths): EngineClient {
  return retryingClient(engineClient(paths.engineSocket), async (error) => {
    const status = await waitHealthy(paths.guardSocket, PATIENCE_MS);
    if (status === null) throw error;
    if (status.engine.state === 'healthy') return;
    const problem = status.pass_through
      ? 'memory is off; comet-cc start brings it back'
      : `the daemon runs but its engine does not (${status.engine.state}); see comet-cc doctor`;
    throw new CometError('daemon_unhealthy', problem, { cause: error });
  });
}

/** Makes a call that finds no daemon once more, after `recover`. */
export function retryingClient(client: EngineClient, recover: (error: CometError) => Promise<void>): EngineClient {
  return {
    call: async (operation, input, options) => {
      try {
        return await client.call(operation, input, options);
      } catch (error) {
        if (!(error instanceof CometError) || error.code !== 'daemon_down') throw error;
        await recover(error);
        return await client.call(operation, input, options);
      }
    },
  };
}

/**
 * The one session whose id starts with `prefix`; the newest where none is asked for.
 * @throws CometError `not_found`, `ambiguous_id` or `usage`
 */
export async function sessionId(client: EngineClient, prefix: string | undefined): Promise<string> {
  // As of a variable of a script that is empty: it would name whatever is alone.
  if (prefix === '') throw new CometError('usage', 'expected an id (got "")');
  const ids = (await client.call('sessions/list', {})).map((session) => session.session_id);
  if (prefix === undefined) {
    // Notes and documents are no conversation.
    const newest = ids.find((id) => !id.startsWith('doc-')) ?? ids[0];
    if (newest !== undefined) return newest;
    throw new CometError('not_found', 'there is no session yet; start one with: comet-cc run claude');
  }
  const matches = ids.includes(prefix) ? [prefix] : ids.filter((id) => id.startsWith(prefix));
  const several = `${prefix} could be ${matches.slice(0, 5).join(', ')}; give more of the id`;
  return getOnly(matches, `no session ${prefix}; comet-cc session ls lists them`, several);
}

function unwrapped(text: string): unknown {
  const reply = parseJson(text);
  if (!isRecord(reply))
    throw new CometError('daemon_unhealthy', 'the engine gave no sensible answer; try comet-cc restart');
  const { result, error } = reply as { result?: unknown; error?: { code: ErrorCode; message: string } };
  if (error) throw new CometError(error.code, error.message);
  return result;
}

function translated(cause: unknown): CometError {
  const { code = '' } = cause as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED' || code === 'ENOENT') return down(cause);
  const hint = 'see comet-cc doctor and comet-cc logs';
  return new CometError('daemon_unhealthy', `the engine does not answer; ${hint}`, { cause });
}

function down(cause?: unknown): CometError {
  return new CometError('daemon_down', 'the daemon is not running; start it with: comet-cc start', { cause });
}
