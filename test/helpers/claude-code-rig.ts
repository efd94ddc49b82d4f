import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { MemoryNode } from '../../memory/model/node.ts';
import type { Receipt } from '../../proxy/ledger/receipt.ts';
import { type Answer, createStandin, type ServedRequest, type Standin } from '../mock-anthropic/index.ts';
import { makeTestCerts } from './certs.ts';
import { type ClaudeProcess, QUIET_CLAUDE, startClaude, TALKS } from './claude.ts';
import { type Aside, clientBrain } from './claude-code-replies.ts';
import { CLI, createHomeWithCerts, LOOK_MS, type TestHome } from './cli.ts';
import { openTmux, type TmuxTerminal } from './tmux.ts';

/** Lets the client use its tools without asking. */
export const TOOLS = ['--allowedTools', 'Read Bash'] as const;

const TARGET = 'api.anthropic.com:443';

export interface ClientRig {
  readonly home: TestHome;
  readonly standin: Standin;
  /** A git repository, the working directory of the client. */
  readonly project: string;
  /** Claude Code, or another binary of it, through `comet-cc run`; `args` beside those that every conversation needs. */
  remembered(args: readonly string[], binary?: string): ClaudeProcess;
  /** Claude Code alone, as without comet-cc. */
  alone(args: readonly string[]): ClaudeProcess;
  /** What the engine says, once it is there to say it. */
  status(): Promise<Status>;
  /** Waits until memory is made of all that was said: what the next request may cut is then no matter of speed. */
  settled(): Promise<void>;
  nodes(): Promise<readonly MemoryNode[]>;
  /** Newest first. */
  receipts(): Promise<readonly Receipt[]>;
  /** Everything the client keeps on disk, as it is now; call the result to go back to it. */
  keepClient(): () => void;
  /** What engine and guard logged at a level. */
  logged(level: 'info' | 'warn' | 'error'): readonly string[];
  /** Hosts the client and our children asked the network's proxy for, other than the API. */
  readonly strangers: readonly string[];
  close(): Promise<void>;
}

export interface Status {
  readonly pid: number;
  readonly engine: { readonly state: string; readonly pid: number; readonly restarts: number };
  readonly requests: { readonly total: number; readonly rewritten: number; readonly failed_open: number };
  readonly tokens: { readonly original: number; readonly sent: number; readonly net_saved: number };
  readonly tunnels: { readonly total: number; readonly failed_open: number };
  readonly llm: { readonly backend: string; readonly last_error: string };
  readonly queue: Readonly<Record<'sensor' | 'compacter' | 'indexer', number>>;
}

export interface ClientRigOptions {
  readonly claude: string;
  readonly asides?: readonly Aside[];
  /** Last word on every answer. */
  readonly deliver?: (answer: Answer, request: ServedRequest) => Answer;
  /** Files of the project. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** Cuts come after a few turns, and each says what stands behind it. */
const EARLY = {
  COMET_CC_TRIM_MODE: 'aggressive',
  COMET_CC_TRIM_TRIGGER_TOKENS: '4500',
  COMET_CC_TRIM_KEEP_TOKENS: '1000',
  COMET_CC_TRIM_MIN_DROP_SHARE: '0.35',
  COMET_CC_COMPACTION_MAX_L1_BUFFER: '4',
};

/**
 * The user's machine: the network is reached through a company proxy (a CONNECT proxy that leads the API's name to the
 * stand-in and nowhere else), whose CA the user trusts. So `claude -p` children, which go past us, believe to speak to
 * the API itself, and nothing can leave this machine.
 */
export async function createClientRig(options: ClientRigOptions): Promise<ClientRig> {
  const certs = makeTestCerts(['api.anthropic.com', '127.0.0.1']);
  const root = mkdtempSync(path.join(os.tmpdir(), 'cc-client-'));
  const project = makeProject(path.join(root, 'project'), options.files ?? {});
  const brain = clientBrain(project, options.asides);
  const deliver = options.deliver ?? ((answer: Answer) => answer);
  const standin = await createStandin({
    tls: { key: certs.key, cert: certs.cert },
    brain: async (request) => deliver(await brain(request), request),
    missing: /^\/api\//,
  });
  const network = await startNetwork(standin.port);
  const env = {
    ...QUIET_CLAUDE,
    HTTPS_PROXY: network.url,
    // The stand-in is this machine's; the network's proxy leads to the world only.
    NO_PROXY: '127.0.0.1',
    NODE_EXTRA_CA_CERTS: certs.caFile,
    COMET_CC_UPSTREAM: standin.origin,
    COMET_CC_UPSTREAM_CA: certs.caFile,
    COMET_CC_CLAUDE_BIN: options.claude,
    COMET_CC_LLM: 'claude',
    ...EARLY,
    ...options.env,
  };
  const home = await createHomeWithCerts(env);
  await home.json(['start', '--json']);
  const status = async (): Promise<Status> => {
    for (;;) {
      const now = (await home.status()) as Status;
      if (now.engine.state === 'healthy') return now;
      await after(LOOK_MS);
    }
  };
  const start = (command: readonly string[], args: readonly string[]): ClaudeProcess =>
    startClaude([...command, ...TALKS, ...args], { env: home.env, cwd: project });
  return {
    home,
    standin,
    project,
    remembered: (args, binary = options.claude) => start([process.execPath, CLI, 'run', binary], args),
    alone: (args) => start([options.claude], args),
    status,
    async settled() {
      while (Object.values((await status()).queue).some((waiting) => waiting > 0)) await after(LOOK_MS);
    },
    nodes: async () => (await home.json(['memory', 'ls', '--all', '--limit', '1000', '--json'])) as MemoryNode[],
    receipts: async () => (await home.json(['explain', '--list', '--json'])) as Receipt[],
    keepClient: () => keepClient(home.user),
    logged: (level) =>
      ['engine.log', 'guard.log'].flatMap((name) => linesAt(level, path.join(home.home, 'logs', name))),
    strangers: network.strangers,
    async close() {
      await home.close();
      await network.close();
      await standin.close();
      for (const dir of [certs.dir, root]) rmSync(dir, { recursive: true });
    },
  };
}

/** A terminal with `claude` and `comet-cc` on its path, in the rig's project. */
export function openClientTerminal({ home, project }: ClientRig, claude: string): TmuxTerminal {
  const bin = path.join(home.user, 'bin');
  mkdirSync(bin);
  symlinkSync(CLI, path.join(bin, 'comet-cc'));
  symlinkSync(claude, path.join(bin, 'claude'));
  writeFileSync(path.join(bin, 'systemctl'), '#!/bin/sh\nexit 0\n', { mode: 0o700 });
  // A tip that the client happens to show when an answer is late stays on the screen, and the mascot moves.
  const settings = path.join(home.user, '.claude', 'settings.json');
  mkdirSync(path.dirname(settings), { recursive: true });
  writeFileSync(settings, JSON.stringify({ spinnerTipsEnabled: false, prefersReducedMotion: true }));
  writeFileSync(path.join(home.user, '.claude.json'), JSON.stringify(settledClient(project)));
  const env = { ...home.env, PATH: `${bin}:${process.env['PATH']}`, SHELL: '/bin/bash' };
  return openTmux(env, { cwd: project, columns: 80 });
}

/** A client that asks nothing at its start. */
function settledClient(project: string) {
  return {
    hasCompletedOnboarding: true,
    theme: 'dark',
    customApiKeyResponses: { approved: [QUIET_CLAUDE.ANTHROPIC_API_KEY.slice(-20)], rejected: [] },
    projects: { [project]: { hasTrustDialogAccepted: true, projectOnboardingSeenCount: 5 } },
  };
}

/** Requests of the conversation itself, as upstream got them. */
export function mainRequests(standin: Standin, sessionId?: string): ServedRequest[] {
  return standin.requests.filter(
    (request) =>
      request.kind === 'messages' &&
      request.class === 'main' &&
      (sessionId === undefined || request.sessionId === sessionId),
  );
}

async function startNetwork(apiPort: number) {
  const strangers: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = http.createServer((_, response) => response.writeHead(405).end());
  server.on('connect', (request: http.IncomingMessage, client: net.Socket, head: Buffer) => {
    if (request.url !== TARGET) {
      strangers.push(request.url ?? '');
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    const remote = net.connect({ host: '127.0.0.1', port: apiPort, noDelay: true }, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      remote.write(head);
      client.pipe(remote).pipe(client);
    });
    for (const [socket, other] of [
      [client, remote],
      [remote, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy()).on('close', () => sockets.delete(socket) && other.destroy());
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    strangers,
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function makeProject(dir: string, files: Readonly<Record<string, string>>): string {
  mkdirSync(dir);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), text);
  }
  execFileSync('git', ['init', '--quiet', dir], { env: { PATH: process.env['PATH'], HOME: dir } });
  return dir;
}

function keepClient(user: string): () => void {
  const kept = path.join(user, 'kept');
  const names = ['.claude', '.claude.json'];
  mkdirSync(kept);
  for (const name of names) cpSync(path.join(user, name), path.join(kept, name), { recursive: true });
  return () => {
    for (const name of names) {
      rmSync(path.join(user, name), { recursive: true });
      renameSync(path.join(kept, name), path.join(user, name));
    }
    rmSync(kept, { recursive: true });
  };
}

function linesAt(level: string, file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line.includes(`"level":"${level}"`));
}
