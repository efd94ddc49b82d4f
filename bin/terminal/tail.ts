import { type FileHandle, open } from 'node:fs/promises';
import { LOG_LIMITS } from '../../common/log.ts';

/** What is looked at from the end of a log at first. */
const TAIL_BYTES = 512 * 1024;

export interface Tail {
  /** Whole lines written since the last call, those in files put aside meanwhile included. */
  read(): Promise<string[]>;
}

interface Opened {
  readonly handle: FileHandle;
  readonly inode: number;
  readonly size: number;
}

/** Follows a log over its rotations: a file is known by its inode, whatever its name has become. */
export function createTail(file: string): Tail {
  let inode = -1;
  let offset = -1;
  let rest = '';
  return {
    async read() {
      const generations = await openAll(file);
      try {
        let text = '';
        const known = generations.findIndex((one) => one.inode === inode);
        const first = offset < 0 ? firstOf(generations) : known;
        const skipped = offset < 0 && sizeOf(generations) > TAIL_BYTES;
        // Nothing known is left: it was removed, or more was written than is kept.
        for (const [at, one] of generations.slice(Math.max(0, first)).entries()) {
          const from = at > 0 || first < 0 || one.size < offset ? 0 : offset < 0 ? startOf(generations, first) : offset;
          text += await textOf(one, from);
          [inode, offset] = [one.inode, one.size];
        }
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        return skipped ? lines.slice(1) : lines;
      } finally {
        for (const { handle } of generations) await handle.close();
      }
    },
  };
}

/** Oldest first, each file once although it may be renamed while we look. */
async function openAll(file: string): Promise<Opened[]> {
  const found: Opened[] = [];
  const names = Array.from({ length: LOG_LIMITS.files }, (_, at) => (at === 0 ? file : `${file}.${at}`));
  for (const name of names) {
    const handle = await open(name, 'r').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (handle === null) continue;
    const { ino, size } = await handle.stat();
    if (found.some((one) => one.inode === ino)) await handle.close();
    else found.unshift({ handle, inode: ino, size });
  }
  return found;
}

/** The generation in which the last `TAIL_BYTES` of all begin. */
function firstOf(generations: readonly Opened[]): number {
  for (let at = generations.length - 1; at > 0; at -= 1) {
    if (sizeOf(generations.slice(at)) >= TAIL_BYTES) return at;
  }
  return 0;
}

function startOf(generations: readonly Opened[], first: number): number {
  return Math.max(0, sizeOf(generations.slice(first)) - TAIL_BYTES);
}

function sizeOf(generations: readonly Opened[]): number {
  return generations.reduce((sum, { size }) => sum + size, 0);
}

async function textOf({ handle, size }: Opened, from: number): Promise<string> {
  const wanted = Math.max(0, size - from);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(wanted), 0, wanted, from);
  return buffer.toString('utf8', 0, bytesRead);
}
