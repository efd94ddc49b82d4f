import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { builtFile } from '../../common/paths.ts';
import { CLI } from '../paths.ts';
import { nowMs } from './stats.ts';
import type { Way } from './way.ts';

interface Status {
  readonly pid: number;
  readonly engine: { readonly pid: number };
  readonly nodes: number;
  readonly requests: { readonly total: number; readonly rewritten: number; readonly failed_open: number };
}

/** The built program with a daemon in a home of its own. */
export interface Daemon {
  readonly way: Way;
  /** `COMET_CC_HOME`. */
  readonly home: string;
  status(): Promise<Status>;
  /** Waits until everything captured is compacted and indexed. */
  flush(): Promise<void>;
  /** Wall time of one command. */
  commandMs(args: readonly string[]): Promise<number>;
  /** Wall time of a hook of Claude Code; `alone`: where no engine is. */
  hookMs(hook: string, where?: 'alone'): Promise<number>;
  /** Wall time of a node that does nothing: the least that any command takes. */
  nodeMs(): Promise<number>;
  /** Resident memory of guard and engine, MB. */
  rss(): Promise<{ guard: number; engine: number }>;
  getRss(pids: { guard: number; engine: number }): Promise<{ guard: number; engine: number }>;
  /** Ends it and keeps its home. */
  halt(): Promise<void>;
  stop(): Promise<void>;
}

/** @param more  of its environment */
export async function startDaemon(
  home: string,
  upstream: { port: number; caFile: string },
  more: Readonly<Record<string, string>> = {},
): Promise<Daemon> {
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    TMPDIR: home,
    COMET_CC_HOME: path.join(home, 'h'),
    COMET_CC_PORT: '0',
    COMET_CC_UPSTREAM: `https://127.0.0.1:${upstream.port}`,
    COMET_CC_UPSTREAM_CA: upstream.caFile,
    COMET_CC_LLM: 'local',
    // Whether a cut pays is not the question here: one has to be in force.
    COMET_CC_TRIM_MODE: 'aggressive',
    COMET_CC_TRIM_TRIGGER_TOKENS: '5000',
    COMET_CC_TRIM_KEEP_TOKENS: '3000',
    ...more,
  };
  const run = async (...args: string[]): Promise<string> =>
    (await execa(process.execPath, [CLI, ...args], { env, extendEnv: false, cwd: home })).stdout;
  const status = async (): Promise<Status> => JSON.parse(await run('status', '--json')) as Status;

  await run('start', '--json');
  const own = JSON.parse(await run('env', '--shell', 'json')) as Record<string, string>;
  const url = new URL(own['HTTPS_PROXY'] as string);
  const credentials = Buffer.from(`${url.username}:${url.password}`).toString('base64');
  const way: Way = {
    port: Number(url.port),
    ca: await readFile(own['NODE_EXTRA_CA_CERTS'] as string, 'utf8'),
    servername: 'api.anthropic.com',
    connect: `Proxy-Authorization: Basic ${credentials}\r\n`,
  };
  return {
    way,
    home: path.join(home, 'h'),
    status,
    flush: async () => void (await run('flush', '--timeout', '120')),
    async commandMs(args) {
      const fromMs = nowMs();
      await run(...args);
      return nowMs() - fromMs;
    },
    async hookMs(hook, where) {
      const input = JSON.stringify({ session_id: 'bench', cwd: home, hook_event_name: hook, prompt: 'Which port?' });
      const nowhere = where === 'alone' ? { COMET_CC_HOME: path.join(home, 'nobody') } : {};
      const script = builtFile('hooks', `${hook}.js`);
      const fromMs = nowMs();
      await execa(process.execPath, [script], { env: { ...env, ...nowhere }, extendEnv: false, cwd: home, input });
      return nowMs() - fromMs;
    },
    async nodeMs() {
      const fromMs = nowMs();
      await execa(process.execPath, ['-e', '0'], { env, extendEnv: false, cwd: home });
      return nowMs() - fromMs;
    },
    async rss() {
      const { pid, engine } = await status();
      return getRss({ guard: pid, engine: engine.pid });
    },
    getRss,
    halt: async () => void (await run('stop', '--now')),
    async stop() {
      await run('stop', '--now');
      await rm(path.join(home, 'h'), { recursive: true, force: true });
    },
  };
}

async function getRss(pids: { guard: number; engine: number }): Promise<{ guard: number; engine: number }> {
  return { guard: await residentMb(pids.guard), engine: await residentMb(pids.engine) };
}

async function residentMb(pid: number): Promise<number> {
  const { stdout } = await execa('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Math.round(Number(stdout) / 1024);
}
