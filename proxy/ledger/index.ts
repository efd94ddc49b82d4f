export { type CostLedger, findConversationRoot, openCostLedger, type RequestCost } from './ledger.ts';
export {
  createMemoryReceipts,
  openReceiptFile,
  openReceipts,
  type Receipt,
  type ReceiptStore,
  type Receipts,
} from './receipt.ts';
export type { Totals } from './store.ts';
export { createMemoryLedger, type LedgerStore, openLedgerFile } from './store.ts';
