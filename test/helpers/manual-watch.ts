import type { NodeWatch } from '../../memory/storage/fs/node-watch.ts';

export interface ManualWatch extends NodeWatch {
  /** As if these files had been changed by hand. */
  tell(files: readonly string[]): void;
  closed: boolean;
}

export function createManualWatch(): ManualWatch {
  let told: (files: readonly string[]) => void = () => {};
  return {
    closed: false,
    async start(changed) {
      told = changed;
    },
    tell: (files) => told(files),
    async close() {
      this.closed = true;
      told = () => {};
    },
  };
}
