export type ErrorCode =
  | 'config_invalid'
  | 'ca_unreadable'
  | 'ca_exists'
  | 'unsafe_file'
  | 'trust_failed'
  | 'port_in_use'
  | 'service_failed'
  | 'share_failed'
  | 'daemon_down'
  | 'daemon_unhealthy'
  | 'not_found'
  | 'ambiguous_id'
  | 'node_invalid'
  | 'schema_newer'
  | 'journal_failed'
  | 'index_failed'
  | 'index_unreadable'
  | 'model_failed'
  | 'model_missing'
  | 'model_timeout'
  | 'upstream_failed'
  | 'upstream_proxy_failed'
  | 'demo_failed'
  | 'uninstall_incomplete'
  | 'not_allowed'
  | 'input_invalid'
  | 'usage';

/** The one error class. `message` says what failed and what to do next; `cause` keeps what was thrown below. */
export class CometError extends Error {
  override readonly name = 'CometError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** @throws CometError `not_found` with `none`, or `ambiguous_id` with `several` */
export function getOnly<T>(fitting: readonly T[], none: string, several: string): T {
  if (fitting.length === 0) throw new CometError('not_found', none);
  if (fitting.length > 1) throw new CometError('ambiguous_id', several);
  return fitting[0] as T;
}

export interface Problem {
  readonly file: string;
  readonly message: string;
}

export const getReason = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** What the system refuses a program for reasons that its user can change. */
const REFUSALS = ['EACCES', 'EDQUOT', 'ENOSPC', 'EPERM', 'EROFS'];

/** One line for stderr; an unexpected error shows its stack, so that it can be reported. */
export function getMessage(error: unknown): string {
  if (error instanceof CometError) return error.message;
  if (isRefused(error)) return `${error.message}; check space and permissions`;
  const { code, syscall, message = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (code === 'ENOTDIR') return `${message}; a file is where a folder belongs`;
  if (syscall === 'uv_cwd') return 'the folder that this shell is in was removed; go to another one: cd';
  return `unexpected ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}

function isRefused(error: unknown): error is Error {
  const { code = '', syscall } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  // Where a file system is read-only, Node reports a missing folder for one that it was to make with its parents.
  return REFUSALS.includes(code) || (code === 'ENOENT' && ['mkdir', 'mkdtemp'].includes(syscall ?? ''));
}

/** @param cause  absent where nothing was thrown */
export function indexError(message: string, cause?: unknown): CometError {
  return new CometError('index_failed', message, { cause });
}
