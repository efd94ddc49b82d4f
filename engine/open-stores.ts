import path from 'node:path';
import { CometError } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import type { HomePaths } from '../common/paths.ts';
import type { UsageStore } from '../memory/index.ts';
import { createUsageFile } from '../memory/index.ts';
import {
  createMemoryLedger,
  createMemoryReceipts,
  type LedgerStore,
  openLedgerFile,
  openReceiptFile,
  type ReceiptStore,
} from '../proxy/ledger/index.ts';
import { openPlanStore, type PlanStore } from '../proxy/rewrite/index.ts';
import type { Redactor } from '../redact/index.ts';
import { openSchema } from './lifecycle/home-schema.ts';

export interface Stores {
  readonly usage: UsageStore;
  readonly costs: LedgerStore;
  readonly receipts: ReceiptStore;
  readonly plans: PlanStore;
  /** Why nothing in the home may be written, memory included; null when it may. */
  readonly locked: Error | null;
}

/** Opens the proxy's stores where the home has our schema; otherwise plans are only replayed and nothing is written. */
export async function openStores(paths: HomePaths, redactor: Redactor, log: Log): Promise<Stores> {
  const plans = openPlanStore(paths.plansDir);
  const locked = await openSchema(paths).then(
    (upgrade) => {
      if (upgrade !== null) log.info('the home was upgraded; the files as they were are in the backup', { ...upgrade });
      return null;
    },
    (error: unknown) => error as Error,
  );
  if (locked !== null) {
    return {
      usage: { load: async () => null, save: async () => {} },
      costs: createMemoryLedger(),
      receipts: createMemoryReceipts(),
      plans: {
        ...plans,
        append: async () => {
          throw new CometError('schema_newer', 'plans of another comet-cc are replayed, never changed');
        },
      },
      locked,
    };
  }
  return {
    usage: createUsageFile(path.join(paths.ledgerDir, 'model-use.json'), log),
    costs: openLedgerFile(path.join(paths.ledgerDir, 'costs.jsonl'), (message) => log.warn('the ledger', { message })),
    receipts: openReceiptFile(path.join(paths.ledgerDir, 'receipts.jsonl'), redactor.text),
    plans,
    locked,
  };
}
