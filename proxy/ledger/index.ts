export { type CostLedger, findConversationRoot, openCostLedger, type RequestCost } from './ledger.ts';
export { openReceiptFile, openReceipts, type Receipt, type ReceiptStore, type Receipts } from './receipt.ts';
export { type LedgerStore, openLedgerFile, type Totals } from './store.ts';
