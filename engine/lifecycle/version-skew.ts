import { statSync } from 'node:fs';
import { VERSION } from '../../common/paths.ts';
import type { GuardStatus } from './control.ts';

/** Every build rewrites this file. */
const BUILT = import.meta.filename;
/** Clocks of a file system and of a process differ by less. */
const APART_MS = 2_000;

/** Why the daemon runs other code than this command, '' when it does not. */
export function otherBuild(guard: Pick<GuardStatus, 'version' | 'uptime_ms'>, nowMs: number): string {
  return difference(guard, { version: VERSION, builtAtMs: statSync(BUILT).mtimeMs, nowMs });
}

export function difference(
  guard: Pick<GuardStatus, 'version' | 'uptime_ms'>,
  own: { readonly version: string; readonly builtAtMs: number; readonly nowMs: number },
): string {
  if (guard.version !== own.version) return `the daemon is comet-cc ${guard.version}, this command is ${own.version}`;
  const startedAtMs = own.nowMs - guard.uptime_ms;
  const isOlder = own.builtAtMs <= own.nowMs && own.builtAtMs > startedAtMs + APART_MS;
  return isOlder ? 'the daemon was started before this comet-cc was built' : '';
}
