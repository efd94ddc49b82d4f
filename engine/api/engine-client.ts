import { CometError } from '../../common/errors.ts';
import type { HomePaths } from '../../common/paths.ts';
import { waitHealthy } from '../lifecycle/control.ts';
import { type EngineClient, engineClient } from './client.ts';

const PATIENCE_MS = 5_000;

/**
 * The engine's API as commands use it: an engine that is just (re)starting is waited for.
 *
 * @throws from `call`: CometError `daemon_down` when no daemon runs, `daemon_unhealthy` when only its engine does not
 */
export function engineOf(paths: HomePaths): EngineClient {
  const client = engineClient(paths.engineSocket);
  return {
    call: async (operation, input, options) => {
      try {
        return await client.call(operation, input, options);
      } catch (error) {
        if (!(error instanceof CometError) || error.code !== 'daemon_down') throw error;
        const status = await waitHealthy(paths.guardSocket, PATIENCE_MS);
        if (status === null) throw error;
        if (status.engine.state === 'healthy') return await client.call(operation, input, options);
        throw new CometError(
          'daemon_unhealthy',
          `the daemon runs but its engine does not (${status.engine.state}); see comet-cc doctor`,
          { cause: error },
        );
      }
    },
  };
}

/**
 * The one session whose id starts with `prefix`; the newest where none is asked for.
 *
 * @throws CometError `not_found` or `ambiguous_id`
 */
export async function sessionId(client: EngineClient, prefix: string | undefined): Promise<string> {
  const sessions = await client.call('sessions/list', {});
  const newest = [...sessions].sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  const ids = newest.map((session) => session.session_id);
  if (prefix === undefined) {
    if (ids[0] !== undefined) return ids[0];
    throw new CometError('not_found', 'there is no session yet; start one with: comet-cc run claude');
  }
  const matches = ids.includes(prefix) ? [prefix] : ids.filter((id) => id.startsWith(prefix));
  if (matches.length === 1) return matches[0] as string;
  if (matches.length === 0) throw new CometError('not_found', `no session ${prefix}; comet-cc session ls lists them`);
  throw new CometError('ambiguous_id', `${prefix} could be ${matches.slice(0, 5).join(', ')}; give more of the id`);
}
