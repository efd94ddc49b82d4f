export type { Totals } from './entry.ts';
export { type CostLedger, findConversationRoot, openCostLedger, type RequestCost } from './ledger.ts';
export { openReceiptFile } from './receipt-store.ts';
export { createMemoryReceipts, openReceipts, type Receipt, type ReceiptStore, type Receipts } from './receipts.ts';
export { createMemoryLedger, type LedgerStore, openLedgerFile } from './store.ts';
