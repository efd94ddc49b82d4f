import { existsSync, readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Outcome, printOutcome } from '../../bin/demo/report.ts';
import { createTerm } from '../../bin/terminal/term.ts';
import { createTestHome, type TestHome } from '../helpers/cli.ts';
import { getProse, INSIDE } from '../helpers/inside-words.ts';

const homes: TestHome[] = [];

/** A home whose temporary folder is its own, so that what a demo leaves there can be seen. */
async function demoHome(): Promise<{ home: TestHome; temp: string }> {
  const home = await createTestHome();
  homes.push(home);
  const temp = path.join(home.user, 't');
  await mkdir(temp);
  return { home, temp };
}

afterEach(async () => {
  for (const home of homes.splice(0)) await home.close();
});

describe('comet-cc demo', () => {
  it('is refused nothing, saves tokens, and keeps its home on demand with the memories it quoted', async () => {
    const { home, temp } = await demoHome();
    const result = await home.run(['demo', '--json', '--keep'], { env: { TMPDIR: temp } });
    expect(result.stderr).toBe('');
    expect(result.code).toBe(0);
    const outcome = JSON.parse(result.stdout) as Outcome;
    expect(outcome).toMatchObject({ ok: true, problems: [], sessions: 3, refused: 0 });
    expect(outcome.turns).toBeGreaterThanOrEqual(36);
    expect(outcome.requests).toBeGreaterThan(outcome.turns);
    expect(outcome.cuts).toBeGreaterThan(0);
    expect(outcome.epochs).toBe(outcome.cuts + outcome.sessions);
    expect(outcome.tokens.saved).toBeGreaterThan(0);
    expect(outcome.tokens.received - outcome.tokens.sent).toBe(outcome.tokens.saved);
    expect(outcome.cache.read).toBeGreaterThan(outcome.cache.written);
    expect(outcome.nodes).toBeGreaterThan(0);
    const { ledger, tokens, receipts, restored } = outcome;
    expect(Math.abs(ledger.received / tokens.received - 1)).toBeLessThan(0.01);
    expect(ledger.sent).toBe(tokens.sent);
    expect(ledger.saved_usd).toBeGreaterThan(0);
    expect(receipts).toEqual({ checked: outcome.requests, true: outcome.requests });
    expect(restored.messages).toBeGreaterThan(outcome.turns * 2);
    expect(restored.equal).toBe(restored.messages);
    expect(outcome.morning?.phases).toHaveLength(5);
    expect(outcome.morning?.file).toMatch(/\/library\/inbox\/\d{4}-\d\d-\d\d\.md$/);
    expect(outcome.morning?.inbox).toMatch(/## Brief, [\s\S]*\n- parcel-desk: 2 sessions, \d+ memories\n/);
    const printed: string[] = [];
    const stream = { write: (text: string) => printed.push(text) > 0 };
    printOutcome(outcome, createTerm(stream, stream, {}));
    expect(getProse(printed.join(''))).not.toMatch(INSIDE);
    expect(existsSync(home.home)).toBe(false);
    expect(outcome.questions).toHaveLength(4);
    const kept = { COMET_CC_HOME: outcome.home ?? '', COMET_CC_PORT: '0' };
    await home.json(['start', '--json'], { env: kept });
    for (const { node_id, line, summary } of outcome.questions) {
      expect(line).toContain(`[${node_id}]`);
      const node = (await home.json(['memory', 'show', String(node_id), '--json'], { env: kept })) as object;
      expect(node).toMatchObject({ node_id, summary });
    }
    const stopped = await home.run(['stop', '--now'], { env: kept });
    expect(stopped.code).toBe(0);
    expect(outcome.questions.slice(1).map((question) => question.in_client_request)).toEqual([false, false, false]);
    expect(outcome.questions[3]?.answer).toMatch(/^Still to do .*Tobias .* by Friday \(\d{4}-\d\d-\d\d\)/);
  });

  it('cleans up when it is interrupted', async () => {
    const { home, temp } = await demoHome();
    const running = home.spawn(['demo'], { env: { TMPDIR: temp } });
    await new Promise<void>((resolve) => {
      running.child.stderr?.on('data', (text: string) => {
        if (text.includes('turn 10')) resolve();
      });
    });
    running.child.kill('SIGINT');
    expect((await running.result).code).toBe(130);
    expect(readdirSync(temp)).toEqual([]);
  });
});
