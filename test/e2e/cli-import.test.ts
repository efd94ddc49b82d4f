import { truncateSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { importClaude } from '../../bin/commands/memory/import.ts';
import { type Context, createContext } from '../../bin/context.ts';
import { writeTranscript } from '../helpers/claude-home.ts';
import { createHomeWithCerts, type TestHome } from '../helpers/cli.ts';

const SESSIONS = 6;
/** Their import takes long enough for a line of progress. */
const MANY_SESSIONS = 16;
const TURNS = 30;

let home: TestHome;

beforeEach(async () => {
  home = await createHomeWithCerts();
});

afterEach(async () => {
  await home.close();
});

function writeSessions(claudeDir: string, sessions = SESSIONS): void {
  for (let session = 0; session < sessions; session += 1) {
    const turns = Array.from({ length: TURNS }, (_, at) => ({
      prompt: `Which port does the ledger ${session} of region ${at} listen on?`,
      answer: `The ledger ${session} of region ${at} listens on port ${4_000 + session * 100 + at}.`,
      atMs: Date.UTC(2026, 0, 1 + session, 8, at),
    }));
    writeTranscript(claudeDir, { sessionId: `session-${session}`, cwd: home.user, turns });
  }
}

/** The command beside the daemon, with what it writes to either stream. */
function onTerminal(claudeDir: string, isTTY: boolean): { context: Context; out: string[]; err: string[] } {
  const [out, err]: [string[], string[]] = [[], []];
  const stream = (into: string[]) => ({ isTTY, write: (text: string) => into.push(text) });
  const env = { COMET_CC_HOME: home.home, HOME: home.user, CLAUDE_CONFIG_DIR: claudeDir };
  const context = createContext({ env, stdout: stream(out), stderr: stream(err) });
  return { context, out, err };
}

interface Report {
  readonly turns: number;
  readonly added: number;
  readonly problems: readonly unknown[];
}

describe('memory import claude', () => {
  it('takes every turn in once, though the engine is killed in the middle', async () => {
    const claudeDir = path.join(home.user, 'claude');
    writeSessions(claudeDir);
    const env = { CLAUDE_CONFIG_DIR: claudeDir };
    const imported = async (...more: string[]): Promise<Report> =>
      (await home.json(['memory', 'import', 'claude', '--json', ...more], { env })) as Report;
    await home.json(['start', '--json']);
    const all = SESSIONS * TURNS;
    expect(await imported('--dry-run')).toMatchObject({ turns: all, added: all, problems: [] });

    const status = async (): Promise<{ nodes: number; engine: { pid: number | null; state: string } }> =>
      (await home.json(['status', '--json'])) as { nodes: number; engine: { pid: number | null; state: string } };
    const first = home.run(['memory', 'import', 'claude', '--json'], { env });
    const { pid } = (await status()).engine;
    await expect.poll(async () => (await status()).nodes).toBeGreaterThan(0);
    process.kill(pid as number, 'SIGKILL');
    await first;
    const isBack = async (): Promise<boolean> => {
      const { engine } = await status();
      return engine.state === 'healthy' && engine.pid !== pid;
    };
    await expect.poll(isBack).toBe(true);

    expect((await imported()).problems).toEqual([]);
    expect(await imported()).toMatchObject({ added: 0, problems: [] });
    const { stdout } = await home.run(['memory', 'export', '--format', 'jsonl']);
    const told = stdout.split('\n').flatMap((line) => {
      const { node } = (line === '' ? {} : JSON.parse(line)) as { node?: { turns: string[] } };
      return node?.turns ?? [];
    });
    expect(told.length).toBe(all);
    expect(new Set(told).size).toBe(all);
  });

  it('exits with 1 when a conversation cannot be read, and still imports the others', async () => {
    const claudeDir = path.join(home.user, 'claude');
    writeSessions(claudeDir, 1);
    const large = writeTranscript(claudeDir, { sessionId: 'large', cwd: home.user, turns: [] });
    truncateSync(large, 256 * 1024 * 1024 + 1);
    const env = { CLAUDE_CONFIG_DIR: claudeDir };
    await home.json(['start', '--json']);
    const { code, stdout, stderr } = await home.run(['memory', 'import', 'claude'], { env });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${large}: larger than 256 MB`)]);
    expect(stdout).toContain(`${TURNS} turns added`);
    const again = await home.run(['memory', 'import', 'claude', '--json'], { env });
    expect([again.code, (JSON.parse(again.stdout) as Report).problems.length]).toEqual([1, 1]);
    truncateSync(large, 0);
    expect((await home.run(['memory', 'import', 'claude'], { env })).code).toBe(0);
  });

  it('says on a terminal how far it is, how fast, and how long it takes', async () => {
    const claudeDir = path.join(home.user, 'claude');
    writeSessions(claudeDir, MANY_SESSIONS);
    await home.json(['start', '--json']);
    const shown = onTerminal(claudeDir, true);
    await importClaude({}, shown.context);
    const lines = shown.err.map((text) => text.replace('\r\u001b[2K', ''));
    const told = lines.filter((line) => /^█*░+ \d+ % {2}[\d,]+ turns, \d+\/s, .+ left$/.test(line));
    expect(told.length).toBeGreaterThan(0);
    const shares = lines.flatMap((line) => / (\d+) %/.exec(line)?.[1] ?? []).map(Number);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(lines.at(-1)).toBe('');
    expect(shown.err.every((text) => text.startsWith('\r\u001b[2K'))).toBe(true);
    expect(shown.out.join('')).toContain(`${MANY_SESSIONS * TURNS} turns added`);

    const piped = onTerminal(claudeDir, false);
    await importClaude({ again: true }, piped.context);
    expect(piped.err).toEqual([]);
    const asked = onTerminal(claudeDir, true);
    await importClaude({ again: true, json: true }, asked.context);
    expect(asked.err).toEqual([]);
    expect(JSON.parse(asked.out.join(''))).toMatchObject({ added: 0, known: MANY_SESSIONS * TURNS });
  });
});
