import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { StatusReport } from '../../engine/api/status-report.ts';
import { createLiveRig, openTerminal } from '../helpers/live-rig.ts';
import { ANSWERS, stubClaude } from '../helpers/stub-claude.ts';
import { createStandin } from '../mock-anthropic/index.ts';

it('the daemon holds its own model calls back on what the API says, tells so, and knows it after a restart', async () => {
  const stub = stubClaude(ANSWERS.replace('result({', 'result({ total_cost_usd: 0.0025,'));
  const headers: Record<string, string> = {};
  const api = await createStandin({ headers });
  const own = { COMET_CC_CLAUDE_BIN: stub.bin, COMET_CC_MODELS_SESSION_TOKENS: '100' };
  const env = { COMET_CC_UPSTREAM: api.origin, COMET_CC_LLM: 'claude', ...own };
  const rig = await createLiveRig(env);
  try {
    const status = async (): Promise<StatusReport> => (await rig.home.json(['status', '--json'])) as StatusReport;
    const first = openTerminal(rig);
    await first.say('The staging database listens on port 5433.');
    await rig.flush();
    expect((await status()).llm).toMatchObject({ calls_today: 1, cost_usd_today: 0.0025, deferred: 0 });

    await first.say('The cache listens on port 6380.');
    await rig.flush();
    expect((await status()).llm).toMatchObject({ calls_today: 1, deferred: 0 });
    const title = 'The staging database listens on port 5433.';
    expect((await status()).budget).toMatchObject({
      session_tokens: 100,
      sessions: [{ title, tokens: 125, spent: true }],
    });
    expect(await rig.home.run(['status'])).toMatchObject({
      stdout: expect.stringContaining('config set models.sessionTokens'),
    });

    const reset = Math.floor(Date.now() / 1_000) + 3_600;
    headers['anthropic-ratelimit-unified-5h-utilization'] = '0.81';
    headers['anthropic-ratelimit-unified-5h-reset'] = String(reset);
    await openTerminal(rig).say('The production database listens on port 5434.');
    await rig.flush();
    const held = {
      calls_today: 1,
      cost_usd_today: 0.0025,
      deferred: 1,
      deferred_because: 'the 5h limit is 81 % used, and our own calls stop at 80 %',
      deferred_until: new Date(reset * 1_000).toISOString(),
    };
    expect((await status()).llm).toMatchObject(held);
    await rig.home.json(['restart', '--json']);
    await rig.flush();
    expect((await status()).llm).toMatchObject(held);
    expect(stub.calls()).toHaveLength(1);
    const kept = await readFile(path.join(rig.home.home, 'ledger', 'model-use.json'), 'utf8');
    expect(JSON.parse(kept)).toMatchObject({ calls: 1, cost_usd: 0.0025 });
  } finally {
    await rig.close();
    await api.close();
    stub.dispose();
  }
});

it('the daemon holds its own model calls back once they cost more than their share', async () => {
  const stub = stubClaude(ANSWERS.replace('result({', 'result({ total_cost_usd: 0.2,'));
  const api = await createStandin();
  const own = { COMET_CC_CLAUDE_BIN: stub.bin, COMET_CC_LLM: 'claude' };
  const rig = await createLiveRig({ COMET_CC_UPSTREAM: api.origin, ...own });
  try {
    const first = openTerminal(rig);
    await first.say('The staging database listens on port 5433.');
    await rig.flush();
    await first.say('The cache listens on port 6380.');
    await rig.flush();
    const { llm } = (await rig.home.json(['status', '--json'])) as StatusReport;
    const because = expect.stringContaining('models.costShare');
    expect(llm).toMatchObject({ calls_today: 1, cost_usd_today: 0.2, deferred: 1, deferred_because: because });
    expect(await rig.home.run(['status'])).toMatchObject({ stdout: expect.stringContaining('1 summary waits') });
  } finally {
    await rig.close();
    await api.close();
    stub.dispose();
  }
});
