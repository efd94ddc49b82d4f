import path from 'node:path';

/** Where systems differ in paths, pipes, signals and permissions, as their makers document it. */
export interface Platform {
  /** Files have an owner and a mode; elsewhere the rights of the user's profile are relied on. */
  readonly hasModes: boolean;
  /** A directory can be opened and fsynced; elsewhere the file system journals names by itself. */
  readonly syncsDirs: boolean;
  /** A connection can be handed to another process. */
  readonly handsOver: boolean;
  /** Bytes that the address of a local listener may have; null where a name is never too long. */
  readonly longestAddress: number | null;
  /** Address of a listener that only this user reaches: a socket in `dir`, or a pipe named after it. */
  localAddress(dir: string, name: string): string;
  /** How a process that leads a group ends with all it has started. */
  endTree(pid: number, signal: 'SIGTERM' | 'SIGKILL'): TreeEnd;
}

export type TreeEnd = { readonly kill: number } | { readonly run: readonly [file: string, ...args: string[]] };

const POSIX: Platform = {
  hasModes: true,
  syncsDirs: true,
  handsOver: true,
  // macOS keeps 104 bytes of `sun_path`, its end included; Linux 108.
  longestAddress: 103,
  localAddress: (dir, name) => path.join(dir, `${name}.sock`),
  endTree: (pid) => ({ kill: -pid }),
};

// A pipe without a security descriptor can be written to by its maker, administrators and the system only. Windows
// knows no signals: what is not asked to end over a pipe is ended, and its children only if they are ended with it.
const WINDOWS: Platform = {
  hasModes: false,
  syncsDirs: false,
  handsOver: false,
  longestAddress: null,
  localAddress: (dir, name) => `${PIPES}comet-cc-${digest(dir)}-${name}`,
  endTree: (pid) => ({ run: ['taskkill', '/pid', String(pid), '/T', '/F'] }),
};

const PIPES = '\\\\.\\pipe\\';

export function platformOf(name: NodeJS.Platform): Platform {
  return name === 'win32' ? WINDOWS : POSIX;
}

export const PLATFORM = platformOf(process.platform);

/** Not a name on disk: nothing to look at, to tighten or to remove. */
export function isPipe(address: string): boolean {
  return address.startsWith(PIPES);
}

/** Names are compared without case there. Loaded here: it would be a sixth of what a hook takes where no pipes are. */
function digest(dir: string): string {
  const { createHash } = process.getBuiltinModule('node:crypto');
  return createHash('sha256').update(path.win32.resolve(dir).toLowerCase()).digest('hex').slice(0, 24);
}
