import { mkdtempSync } from 'node:fs';
import { appendFile, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { silentLog } from '../../../../common/log.ts';
import { cutRule } from '../../../../engine/cut-config.ts';
import { openReceiptFile, openReceipts } from '../../../../proxy/ledger/receipt.ts';
import { type BilledPlay, playBilled } from '../../../helpers/metered-run.ts';
import { isTrueOf } from '../../../helpers/receipt-proof.ts';
import { type ConversationPlan, seededPlan } from '../../../helpers/transcripts.ts';

const dir = mkdtempSync(path.join(os.tmpdir(), 'comet-receipts-'));
afterAll(() => rm(dir, { recursive: true, force: true }));

const { inject, trim } = Config.parse({ trim: { mode: 'aggressive', triggerTokens: 600, keepTokens: 200 } });
const CANARY = 'canary-7f3a91';
const plain = seededPlan(11, { turns: 9, bulk: 900, models: ['claude-opus-5-5'] });
/** Something that must not be found again in every place where a conversation can have it. */
const talk: ConversationPlan = {
  ...plain,
  turns: plain.turns.map((turn) => ({
    ...turn,
    prompt: `${turn.prompt} ${CANARY}`,
    answer: `${turn.answer} ${CANARY}`,
    rounds: turn.rounds.map((round) => ({
      ...round,
      tools: round.tools.map((tool) => ({ ...tool, result: `${tool.result} ${CANARY}` })),
    })),
  })),
};

async function playOn(file: string, most = 1_000): Promise<BilledPlay> {
  const receipts = await openReceipts({
    store: openReceiptFile(file, (line) => line),
    redact: (said) => said,
    most,
    log: silentLog,
  });
  const config = { ...inject, memoryDeadlineMs: 5_000, cut: cutRule(trim) };
  const play = await playBilled(talk, { config, receipts });
  await play.rewriter.close();
  return play;
}

const reopened = async (file: string, most = 1_000) =>
  (
    await openReceipts({ store: openReceiptFile(file, (line) => line), redact: (said) => said, most, log: silentLog })
  ).list();

describe('receipts on disk', () => {
  it('lose every request that names a memory which is removed', async () => {
    const file = path.join(dir, 'forgotten', 'receipts.jsonl');
    await playOn(file);
    const receipts = await openReceipts({
      store: openReceiptFile(file, (line) => line),
      redact: (said) => said,
      most: 1_000,
      log: silentLog,
    });
    const named = receipts.list().flatMap(({ added }) => added);
    // Only the newest requests have what was made last.
    const node = receipts
      .list()[0]
      ?.added.flatMap(({ nodes }) => nodes)
      .toSorted()
      .at(-1) as string;
    const texts = named.filter(({ nodes }) => nodes.includes(node)).map(({ text }) => text);
    const before = receipts.list().length;
    await receipts.forget([node]);
    expect(texts.length).toBeGreaterThan(0);
    expect(receipts.list().length).toBeLessThan(before);
    expect(receipts.list().length).toBeGreaterThan(0);
    expect(await reopened(file)).toEqual(receipts.list());
    const onDisk = await readFile(file, 'utf8');
    for (const text of texts) expect(onDisk).not.toContain(JSON.stringify(text).slice(1, -1));
  });

  it('come back after a restart, true for every request, and hold nothing of what Claude Code sent', async () => {
    const file = path.join(dir, 'kept', 'receipts.jsonl');
    const { steps, rewriter } = await playOn(file);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const receipts = await reopened(file);
    expect(receipts).toEqual(rewriter.receipts());
    expect(receipts).toHaveLength(steps.length);
    for (const [at, receipt] of receipts.toReversed().entries()) {
      const { request, body } = steps[at] as (typeof steps)[number];
      expect(isTrueOf(receipt, request.bytes, body)).toBe(true);
      expect(receipt.economics.billed).not.toBeNull();
    }
    expect(receipts.some(({ dropped }) => dropped.length > 0)).toBe(true);
    expect(receipts.some(({ thinking_stripped }) => thinking_stripped > 0)).toBe(true);
    expect(steps.some(({ body }) => body.includes(CANARY))).toBe(true);
    const text = await readFile(file, 'utf8');
    expect(text).not.toContain(CANARY);
    expect(text).not.toContain('signature');
  });

  it('are redacted once, also when they are written again, and what is on disk stays as it is', async () => {
    const file = path.join(dir, 'redacted', 'receipts.jsonl');
    const asked: string[] = [];
    const redact = (text: string): string => {
      asked.push(text);
      return text.replaceAll('Brief', 'B[]');
    };
    const open = () => openReceipts({ store: openReceiptFile(file, redact), redact, most: 1_000, log: silentLog });
    const first = await open();
    const { rewriter, steps } = await playBilled(talk, {
      config: { ...inject, memoryDeadlineMs: 5_000, cut: cutRule(trim) },
      receipts: first,
    });
    await rewriter.close();
    const kept = await readFile(file, 'utf8');
    expect([kept.includes('Brief'), kept.includes('B[]')]).toEqual([false, true]);
    const long = asked.filter((text) => text.length >= 100);
    expect(new Set(long).size).toBe(long.length);

    asked.length = 0;
    const second = await open();
    const before = second.list();
    expect(before).toHaveLength(steps.length);
    const node = before.flatMap(({ added }) => added.flatMap(({ nodes }) => nodes)).at(0) as string;
    await second.forget([node]);
    expect(second.list().length).toBeLessThan(before.length);
    expect(asked).toEqual([]);
    await second.close();
    expect((await open()).list()).toEqual(second.list());
  });

  it('are the newest ones only, and a torn line costs one', async () => {
    const file = path.join(dir, 'few.jsonl');
    const { steps } = await playOn(file, 5);
    await appendFile(file, '\n{"request_id":"torn","edits":[{"sta');
    const receipts = await reopened(file, 5);
    expect(receipts.map(({ request_id }) => request_id)).toEqual(
      steps
        .slice(-5)
        .map(({ request }) => `r${request.index}`)
        .toReversed(),
    );
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.includes('request_id'));
    expect(lines.length).toBeLessThanOrEqual(11);
  });
});
