import { CometError } from '../common/errors.ts';

/** The exit codes that other programs rely on. */
export const EXIT = { done: 0, failed: 1, usage: 2, daemonDown: 3, notFound: 4 } as const;

export function exitCodeOf(error: unknown): number {
  if (!(error instanceof CometError)) return EXIT.failed;
  switch (error.code) {
    case 'usage':
    case 'ambiguous_id':
      return EXIT.usage;
    case 'daemon_down':
      return EXIT.daemonDown;
    case 'not_found':
      return EXIT.notFound;
    default:
      return EXIT.failed;
  }
}
