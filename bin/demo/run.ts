import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { Clock } from '../../common/async.ts';
import { loadConfig } from '../../common/config.ts';
import { CometError } from '../../common/errors.ts';
import { ensureDir } from '../../common/files.ts';
import { type HomePaths, homePaths } from '../../common/paths.ts';
import { engineClient } from '../../engine/api/index.ts';
import { PROXY_NAMES, prepareDaemon, startDaemon, stopDaemon } from '../../engine/lifecycle/index.ts';
import { type Brain, createStandin, type Standin } from '../../test/mock-anthropic/index.ts';
import type { Term } from '../terminal/term.ts';
import { createClient, type SentRequest, type Way } from './client.ts';
import { PROJECT_DIR, type StorySession } from './story.ts';

/** What a demo plays on: a home of its own, the real guard and engine, and the mock upstream behind them. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

export interface StageOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly term: Term;
  readonly brain: Brain;
  /** The prompt cache's. */
  readonly clock: Clock;
  /** The temporary home stays; the daemon is stopped all the same. */
  readonly keep: boolean;
}

/** @throws CometError `daemon_unhealthy` or `port_in_use` when guard or engine do not come up; nothing is left then */
export async function openStage(options: StageOptions) {
  // Short: the path of a Unix socket has about a hundred bytes.
  const home = await mkdtemp(path.join(os.tmpdir(), 'comet-demo-'));
  const paths = homePaths(home);
  const standin = await createStandin({ brain: options.brain, clock: options.clock });
  let closing: Promise<void> | null = null;
  const closeAll = async (): Promise<void> => {
    try {
      await stopDaemon(paths);
    } finally {
      await standin.close();
      if (!options.keep) await rm(home, { recursive: true, force: true });
    }
  };
  /** Ends the daemon and the mock upstream in any case, and removes the home unless it is kept. Idempotent. */
  const close = (): Promise<void> => (closing ??= closeAll());
  try {
    const way = await startHere(paths, standin, options);
    return { paths, way, standin, engine: engineClient(paths.engineSocket), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startHere(paths: HomePaths, standin: Standin, { env, term }: StageOptions): Promise<Way> {
  const temp = path.join(paths.home, 'tmp');
  for (const dir of [paths.home, temp]) await ensureDir(dir);
  const own = {
    ...withoutUsers(env),
    COMET_CC_HOME: paths.home,
    COMET_CC_PORT: '0',
    COMET_CC_UPSTREAM: standin.origin,
    COMET_CC_LLM: 'local',
    // The demo shows what is recalled; how busy this machine is just now is another matter.
    COMET_CC_RECALL_DEADLINE_MS: '15000',
    COMET_CC_TRIM_DEADLINE_MS: '20000',
    // The story has no pauses, in which most trims of real sessions happen; the output says so.
    COMET_CC_TRIM_LOSS_SHARE: '1',
    COMET_CC_HOLD_MS: '20000',
    COMET_CC_START_MS: '60000',
    // The story has its nights when it comes to them.
    COMET_CC_DREAM_AT: '',
    // The store's native part leaves empty folders where temporary files go.
    TMPDIR: temp,
  };
  const context = { env: own, paths, term, config: async (flags = {}) => loadConfig(own, flags).config };
  const setup = await prepareDaemon(context, {});
  const { status, problem } = await startDaemon(setup);
  if (problem !== null) throw new CometError('daemon_unhealthy', problem);
  return { port: status.port, token: setup.token, ca: await readFile(setup.bundle, 'utf8') };
}

/** Neither the user's settings of this program nor the user's way out of the machine have a part in the demo. */
function withoutUsers(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const dropped = new Set<string>([...PROXY_NAMES, 'NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS']);
  const kept = Object.entries(env).filter(([name]) => !dropped.has(name) && !name.startsWith('COMET_CC_'));
  return Object.fromEntries(kept);
}

export interface Played {
  readonly turns: number;
  readonly of: number;
  readonly session: number;
}

const REQUEST_MS = 20_000;
const SETTLE_MS = 30_000;
const FLUSH_MS = 25_000;

/** A clock of the story's: 20 seconds a request, whatever this machine needs for it. */
export function createStoryClock() {
  let nowMs = Date.UTC(2026, 10, 2, 8);
  return {
    now: () => nowMs,
    advance: (ms: number): void => {
      nowMs += ms;
    },
  };
}

export type PlayedStory = Awaited<ReturnType<typeof playStory>>;

/** Plays every session of the story through the stage. @throws CometError where a request does not come back */
export async function playStory(
  stage: Stage,
  story: readonly StorySession[],
  options: {
    readonly clock: ReturnType<typeof createStoryClock>;
    readonly onRequest: (request: SentRequest) => void;
    readonly onTurn: (played: Played) => void;
  },
) {
  /** To each prompt the last one, as it came back to the client. */
  const answers = new Map<string, string>();
  /** Of the last session. */
  let morning: Awaited<ReturnType<typeof dream>> | null = null;
  const of = story.reduce((sum, session) => sum + session.turns.length, 0);
  let turns = 0;
  for (const [at, session] of story.entries()) {
    options.clock.advance(session.pauseMs);
    // The engine summarizes a session's remaining turns after a long pause; the demo does it at once.
    if (session.pauseMs > 0) await stage.engine.call('flush', { timeoutMs: FLUSH_MS });
    if (at > 0 && at === story.length - 1) morning = await dream(stage);
    const client = createClient(stage.way, session, (request) => {
      options.clock.advance(REQUEST_MS);
      options.onRequest(request);
    });
    for (const [done, turn] of session.turns.entries()) {
      await settle(stage, session.id, done);
      answers.set(turn.prompt, await client.play(turn));
      turns += 1;
      options.onTurn({ turns, of, session: at + 1 });
    }
  }
  return { answers, morning };
}

/** What a session begins with after the nightly pass; `file`: of the brief, null where there is none. */
async function dream({ engine }: Stage) {
  const { phases } = await engine.call('memory/dream', { dryRun: false }, { timeoutMs: FLUSH_MS });
  const { brief = null } = await engine.call('project/summary', { projectDir: PROJECT_DIR, begins: true });
  return { phases, file: brief, inbox: (await engine.call('inbox/show', {})).text };
}

/** A person reads an answer before the next prompt; memory has all that time. Late is no failure. */
async function settle({ engine }: Stage, sessionId: string, turns: number): Promise<void> {
  if (turns === 0) return;
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; await after(5)) {
    const [{ queue }, sessions] = await Promise.all([engine.call('status', {}), engine.call('sessions/list', {})]);
    const turnCount = sessions.find((session) => session.session_id === sessionId)?.turns ?? 0;
    if (turnCount >= turns && queue.sensor + queue.compacter + queue.indexer === 0) return;
  }
}
