import type { z } from 'zod';
import { CometError, type ErrorCode } from '../../common/errors.ts';
import type { Log } from '../../common/log.ts';
import { parseJson } from '../../common/text.ts';
import { CHANGING, type Operation, operations } from './contract.ts';
import type { EngineServices, OperationOf } from './service.ts';

export const MAX_BODY_BYTES = 1024 * 1024;
const STATUS_OF: Readonly<Record<string, number>> = {
  ...{ usage: 400, input_invalid: 400, not_allowed: 403, not_found: 404, ambiguous_id: 409, node_invalid: 422 },
};

export interface Reply {
  readonly status: number;
  readonly body:
    | { readonly result: unknown }
    | { readonly error: { readonly code: ErrorCode; readonly message: string } };
}

export interface Call {
  readonly operation: string;
  /** JSON text; read only for an operation that exists. */
  readonly body: () => Promise<string>;
}

/**
 * The answer to `POST /v1/<operation>`, from the socket or the page. Never rejects.
 * @param services  null while the engine starts
 */
export async function runOperation(services: EngineServices | null, call: Call, log: Log): Promise<Reply> {
  try {
    return { status: 200, body: { result: await result(services, call) } };
  } catch (error) {
    if (!(error instanceof CometError)) log.error('an api operation failed', { operation: call.operation, error });
    const { code, message } = error instanceof CometError ? error : unforeseen(error);
    return { status: STATUS_OF[code] ?? 500, body: { error: { code, message } } };
  }
}

/** The message of a library may quote stored text, so it goes only to the log, which redacts it. */
function unforeseen(error: unknown): CometError {
  const { code, name } = error as NodeJS.ErrnoException;
  // The engine restarts by itself once it is idle.
  if (code === 'ERR_MODULE_NOT_FOUND')
    return new CometError('daemon_unhealthy', 'comet-cc was updated just now; try again in some seconds');
  return new CometError('daemon_unhealthy', `the engine failed at it (${code ?? name}); comet-cc logs says why`);
}

async function result(services: EngineServices | null, { operation, body }: Call): Promise<unknown> {
  if (!Object.hasOwn(operations, operation))
    throw new CometError('not_found', 'no such operation; comet-cc restart brings both sides to one version');
  if (services === null) throw new CometError('daemon_down', 'the engine starts or ends just now; try again');
  const { input: schema, run } = operations[operation as Operation] as OperationOf<z.ZodType, unknown>;
  const value = parseJson(await body());
  if (value === undefined) throw new CometError('usage', 'the body is not JSON');
  const input = schema.safeParse(value, {
    error: ({ code, origin, maximum }) =>
      code === 'too_big' && origin === 'string' ? `expected at most ${maximum} characters` : undefined,
  });
  if (!input.success) {
    const issue = input.error.issues[0];
    throw new CometError('input_invalid', `${issue?.path.join('.') || 'input'}: ${issue?.message ?? 'not valid'}`);
  }
  try {
    return await run(services, input.data);
  } finally {
    if (CHANGING.has(operation)) {
      services.pagesChanged();
      services.ui.touch();
    }
  }
}
