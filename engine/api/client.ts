import { CometError, type ErrorCode } from '../../common/errors.ts';
import { postLocal } from '../../common/local-request.ts';
import { socketPresent } from '../lifecycle/control.ts';
import type { Operation, OperationInput, OperationResults } from './contract.ts';

export interface EngineClient {
  /**
   * @throws CometError `daemon_down` when no engine listens, `daemon_unhealthy` when it gives no answer in time,
   *         or the error that the engine answered with
   */
  call<K extends Operation>(
    operation: K,
    input: OperationInput<K>,
    options?: { readonly timeoutMs?: number },
  ): Promise<OperationResults[K]>;
}

const TIMEOUT_MS = 30_000;

export function engineClient(socket: string): EngineClient {
  return {
    call: async (operation, input, options = {}) => {
      if (!(await socketPresent(socket))) throw down();
      const signal = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
      const reply = await postLocal(socket, { path: `/v1/${operation}`, body: JSON.stringify(input), signal }).catch(
        (error: NodeJS.ErrnoException) => Promise.reject(translated(error)),
      );
      return unwrapped(reply) as OperationResults[typeof operation];
    },
  };
}

function unwrapped(text: string): unknown {
  let reply: { result?: unknown; error?: { code: ErrorCode; message: string } };
  try {
    reply = JSON.parse(text) as typeof reply;
  } catch (error) {
    throw new CometError('daemon_unhealthy', 'the engine gave no sensible answer; try comet-cc restart', {
      cause: error,
    });
  }
  if (reply.error) throw new CometError(reply.error.code, reply.error.message);
  return reply.result;
}

function translated(error: NodeJS.ErrnoException): CometError {
  if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') return down(error);
  return new CometError('daemon_unhealthy', 'the engine does not answer; see comet-cc doctor and comet-cc logs', {
    cause: error,
  });
}

function down(cause?: unknown): CometError {
  return new CometError('daemon_down', 'the daemon is not running; start it with: comet-cc start', { cause });
}
