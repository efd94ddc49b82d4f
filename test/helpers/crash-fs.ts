import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type * as promises from 'node:fs/promises';
import path from 'node:path';

type Fs = typeof promises;

/** Where the process dies, and what it leaves. */
export interface Death {
  /** The step that is not finished, counted from 1. */
  readonly step: number;
  /** Share of the bytes that a write in that step still makes, 0 to 1. */
  readonly tear: number;
  /** The machine goes too: of what was not synced, a share in 0 to 1 that this gives stays. Null: all of it stays. */
  readonly power: (() => number) | null;
}

interface Unsynced {
  readonly dir: string;
  undo(): void;
}

/**
 * A disk whose process dies at a chosen step: each call that changes something is one. A process that was killed
 * leaves exactly what its finished calls did, and a part of the one write it was in; so does this. Calls after the
 * death do nothing and throw.
 */
export function createMortalDisk() {
  let death: Death | null = null;
  let steps = 0;
  let isDead = false;
  let sizes = new Map<string, { synced: number; now: number }>();
  let names: Unsynced[] = [];

  /** Runs `whole`, or in the last step `part`. */
  async function step<T>(
    whole: () => Promise<T>,
    part: (share: number) => Promise<unknown> = async () => {},
  ): Promise<T> {
    if (isDead) throw new Error('the process is dead');
    steps += 1;
    if (steps !== death?.step) return await whole();
    isDead = true;
    await part(death.tear);
    if (death.power !== null) loseUnsynced(death.power);
    throw new Error('the process died here');
  }

  function loseUnsynced(keeps: () => number): void {
    for (const [file, { synced, now }] of sizes) {
      if (!existsSync(file) || synced >= now) continue;
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.subarray(0, synced + Math.floor((bytes.length - synced) * keeps())));
    }
    // The newest first; what came before a name that stayed has stayed too.
    const lost = names.slice(Math.floor(names.length * keeps()));
    for (const name of lost.reverse()) name.undo();
  }

  function created(file: string): void {
    sizes.set(file, { synced: 0, now: 0 });
    names.push({ dir: path.dirname(file), undo: () => rmSync(file, { force: true }) });
  }

  function replaced(file: string, from: string | null): void {
    const before = existsSync(file) ? readFileSync(file) : null;
    names.push({
      dir: path.dirname(file),
      undo: () => (before === null ? rmSync(file, { force: true }) : writeFileSync(file, before)),
    });
    const size = from === null ? undefined : sizes.get(from);
    if (from !== null) sizes.delete(from);
    if (size === undefined) sizes.delete(file);
    else sizes.set(file, size);
  }

  function mortalHandle(handle: promises.FileHandle, file: string, isDir: boolean): promises.FileHandle {
    const sync = async (call: () => Promise<void>): Promise<void> => {
      await step(call);
      const size = sizes.get(file);
      if (size !== undefined) size.synced = size.now;
      if (isDir) names = names.filter(({ dir }) => dir !== file);
    };
    const write = (data: string | Uint8Array) => {
      const bytes = Buffer.from(data as Uint8Array);
      const size = sizes.get(file) ?? { synced: existsSync(file) ? readFileSync(file).length : 0, now: 0 };
      sizes.set(file, size);
      const put = async (part: Buffer) => {
        await handle.appendFile(part);
        size.now = readFileSync(file).length;
      };
      return step(
        () => put(bytes),
        (share) => put(bytes.subarray(0, Math.floor(bytes.length * share))),
      );
    };
    const own: Partial<Record<keyof promises.FileHandle, unknown>> = {
      writeFile: write,
      appendFile: write,
      write,
      sync: () => sync(() => handle.sync()),
      datasync: () => sync(() => handle.datasync()),
      truncate: (length: number) =>
        step(async () => {
          await handle.truncate(length);
          const size = sizes.get(file);
          if (size !== undefined) Object.assign(size, { now: length, synced: Math.min(size.synced, length) });
        }),
    };
    return new Proxy(handle, {
      get(target, name) {
        if (name in own) return own[name as keyof promises.FileHandle];
        const value = Reflect.get(target, name) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** `node:fs/promises` as the code under test sees it. */
  function mortal(real: Fs): Fs {
    const open = async (file: string, flags: string | number = 'r', mode?: number) => {
      if (flags === 'r') return mortalHandle(await real.open(file, flags), file, true);
      return step(async () => {
        const isNew = !existsSync(file);
        const handle = await real.open(file, flags, mode);
        if (isNew) created(file);
        return mortalHandle(handle, file, false);
      });
    };
    const changes = {
      open,
      rename: (from: string, to: string) =>
        step(() => {
          replaced(to, from);
          return real.rename(from, to);
        }),
      link: (from: string, to: string) =>
        step(async () => {
          await real.link(from, to);
          created(to);
          sizes.delete(to);
        }),
      rm: (file: string, options?: object) =>
        step(() => {
          if (existsSync(file) && !(options && 'recursive' in options)) replaced(file, null);
          return real.rm(file, options);
        }),
      writeFile: (file: string, data: string | Uint8Array, options?: object) =>
        step(
          () => real.writeFile(file, data, options),
          (share) => real.writeFile(file, Buffer.from(data as Uint8Array).subarray(0, share * data.length), options),
        ),
      mkdir: (dir: string, options?: object) => step(() => real.mkdir(dir, options)),
      chmod: (file: string, mode: number) => step(() => real.chmod(file, mode)),
      truncate: (file: string, length: number) => step(() => real.truncate(file, length)),
    };
    return { ...real, ...(changes as unknown as Partial<Fs>) };
  }

  return {
    mortal,
    /** From here on steps are counted, and the process dies at one. */
    live(until: Death | null): void {
      [death, steps, isDead, sizes, names] = [until, 0, false, new Map(), []];
    },
    /** The next process: nothing is in its way. */
    reborn(): { readonly steps: number; readonly died: boolean } {
      const past = { steps, died: isDead };
      [death, steps, isDead] = [null, 0, false];
      return past;
    },
  };
}
