import { appendDurably, readFileIfPresent } from '../../../common/files.ts';

/** Ids that must outlive the process: what the user removed is never captured again. */
export interface IdSetFile {
  load(): Promise<readonly string[]>;
  add(ids: readonly string[]): Promise<void>;
}

const HASH = /^[0-9a-f]{64}$/;

/** One turn id a line, append-only, fsynced: Claude Code keeps sending what the user had removed here. */
export function createIdSetFile(file: string): IdSetFile {
  return {
    async load() {
      const text = (await readFileIfPresent(file)) ?? '';
      return text.split('\n').filter((line) => HASH.test(line));
    },
    // A line that a power cut tore before these must not take one of them along.
    add: (turnIds) => appendDurably(file, `\n${turnIds.join('\n')}\n`),
  };
}
