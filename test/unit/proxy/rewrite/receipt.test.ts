import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../common/log.ts';
import type { Receipt } from '../../../../proxy/ledger/receipt.ts';
import type { RecalledLine } from '../../../../proxy/ports.ts';
import type { RewriterConfig } from '../../../../proxy/rewrite/index.ts';
import type { PlanRecord } from '../../../../proxy/rewrite/plan.ts';
import { earlyConfig } from '../../../fuzz/rewriter-rig.ts';
import { createFakeMemory } from '../../../helpers/fake-memory.ts';
import { createMemoryPlanStore, openRewriter } from '../../../helpers/open-rewriter.ts';
import { growConversation, replyFrom, seededPlan } from '../../../helpers/transcripts.ts';
import { createJudge } from '../../../mock-anthropic/index.ts';

const NOTE = 'comet-cc memory show ID --depth 2';
const lanes = { raw: { rank: 1, score: 12.5 }, vector: { rank: 3, score: 0.4 } };

const config = (retrieval: RewriterConfig['retrieval']): RewriterConfig => ({
  ...earlyConfig({ triggerTokens: 100_000 }),
  retrieval,
});

/** Receipts of a conversation whose every prompt recalls one line of the user and one of a tool, oldest first. */
async function getReceipts(retrieval: RewriterConfig['retrieval'], restart = false): Promise<Receipt[]> {
  const memory = createFakeMemory();
  let prompts = 0;
  memory.recall = async () => {
    prompts += 1;
    return ['user', 'tool'].map((origin, at): RecalledLine => {
      const nodeId = `mem_20261101_00000${prompts}_b0000${at}`;
      const line = { nodeId, text: `- [${nodeId}] said ${prompts}`, origin: origin as 'user' | 'tool' };
      return { line, score: 0.8, lanes, isExact: true };
    });
  };
  const records: PlanRecord[] = [];
  const open = () =>
    openRewriter({
      memory,
      plans: createMemoryPlanStore(records),
      config: config(retrieval),
      clock: { now: () => 0 },
      randomHex: (bytes) => 'a'.repeat(bytes * 2),
      log: silentLog,
    });
  let rewriter = await open();
  const receipts: Receipt[] = [];
  const judge = createJudge();
  await growConversation(seededPlan(3, { turns: 3, rounds: 0, models: ['claude-opus-4-8'] }), async (request) => {
    if (restart) rewriter = await open();
    const asked = { requestId: 'r', path: 'messages', headers: request.headers, body: request.bytes, receivedAtMs: 0 };
    const { body } = await rewriter.rewrite({ ...asked, path: 'messages' }, new AbortController().signal);
    receipts.push(rewriter.receipts()[0] as Receipt);
    return replyFrom(judge.judge({ body, headers: request.headers, atMs: request.atMs }), request);
  });
  return receipts;
}

const recalledIn = (text: string): string[] => [...text.matchAll(/mem_20261101_00000\d_b0000\d/g)].map(([id]) => id);

describe.each(['auto', 'user-block', 'system-message', 'system-field'] as const)('with %s', (mode) => {
  it.each([false, true])('a receipt says of each recalled line how it was found, restarted: %s', async (restart) => {
    const receipts = await getReceipts(mode, restart);
    expect(receipts.length).toBeGreaterThan(2);
    for (const { added } of receipts) {
      for (const { text, found = [] } of added) {
        expect(found.map(({ nodeId }) => nodeId)).toEqual(recalledIn(text));
        for (const how of found) expect(how).toMatchObject({ score: 0.8, lanes });
        if (found.length > 0) expect(text.split('\n').filter((line) => line.includes(NOTE))).toHaveLength(1);
      }
    }
    const [first] = receipts;
    expect(first?.added[0]?.channel).toBe('system');
    expect(recalledIn(first?.added[0]?.text ?? '')).toEqual(['mem_20261101_000001_b00000']);
    expect(
      recalledIn(
        receipts
          .at(-1)
          ?.added.map(({ text }) => text)
          .join('\n') ?? '',
      ).length,
    ).toBeGreaterThan(1);
  });
});
