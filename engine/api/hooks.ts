import { z } from 'zod';
import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import { LruMap } from '../../common/map.ts';
import type { Memory } from '../../memory/index.ts';
import { renderSystemBlock, toLine, withoutSent } from '../../proxy/rewrite/index.ts';
import type { Policy } from '../policy/index.ts';
import type { Subagents } from '../policy/subagents.ts';
import { id, projectPath } from './schema.ts';

/** Text that a hook adds to the conversation, of clean origin; '' for nothing. */
interface HookText {
  readonly text: string;
}

export const sessionInput = z.strictObject({ sessionId: id });

export const startInput = sessionInput.extend({
  projectDir: projectPath,
  /** The session's requests pass through the proxy, which adds the context otherwise. */
  passes: z.boolean().default(false),
  /** Whether the hook adds the project's session context. */
  adds: z.boolean().default(true),
  /** Whether the user has not been told yet that memory is on. */
  tells: z.boolean().default(false),
});

export const promptInput = sessionInput.extend({ prompt: z.string().max(900_000) });

export const compactInput = sessionInput.extend({ done: z.boolean() });

export const subagentInput = sessionInput.extend({
  projectDir: projectPath,
  agentType: z.string().max(200),
  agentId: z.string().max(200).default(''),
});

type SessionStart = Omit<z.infer<typeof startInput>, 'passes' | 'tells'>;
type SubagentStart = z.infer<typeof subagentInput>;
export type HookHandlers = ReturnType<typeof createHookHandlers>;

interface HookDeps {
  readonly memory: Pick<Memory, 'capture' | 'library' | 'recall'>;
  readonly policy: Pick<Policy, 'of'>;
  readonly subagents: Pick<Subagents, 'ofType' | 'note'>;
  readonly config: Pick<Config, 'inject'>;
  /** The part of the library in the memory files that Claude Code puts into each session. */
  readonly linkedText: () => Promise<string>;
  readonly log: Log;
  readonly now: () => number;
}

const NO_TEXT: HookText = { text: '' };
/** A hook that is installed twice, by settings and as a plugin, calls twice at once. */
const DUPLICATE_MS = 5_000;
const SESSIONS = 500;

/**
 * Answers Claude Code's hooks. Only lines of clean origin are given, because Claude Code shows a hook's text in a system
 * reminder. Work that takes longer than a hook may continues after the answer.
 */
export function createHookHandlers({ memory, policy, subagents, config, linkedText, log, now }: HookDeps) {
  const started = new LruMap<string, number>(SESSIONS);

  function startedJustNow(sessionId: string): boolean {
    const before = started.get(sessionId) ?? Number.NEGATIVE_INFINITY;
    started.set(sessionId, now());
    return now() - before < DUPLICATE_MS;
  }

  /** The system block of a session without the proxy; '' for none. */
  async function sessionBlock(sessionId: string, projectDir: string): Promise<string> {
    const linked = await linkedText();
    const { lines, library: all = [], ...context } = await memory.recall.sessionContext(sessionId, projectDir);
    const library = withoutSent(all, (text) => linked.includes(text));
    const given = { ...context, library, lines: lines.map(toLine) };
    return renderSystemBlock({ ...given, budgetTokens: config.inject.systemTokens })?.text ?? '';
  }

  function runLater(work: Promise<unknown>, failure: string, sessionId: string): HookText {
    // A session that bypassed the proxy is unknown, which is no fault.
    work.catch((error: unknown) => log.info(failure, { sessionId, error }));
    return NO_TEXT;
  }

  return {
    /** `isFirst`: no other hook of the session was answered just now. */
    async sessionStart({ sessionId, projectDir, adds }: SessionStart): Promise<HookText & { isFirst: boolean }> {
      if (startedJustNow(sessionId)) return { ...NO_TEXT, isFirst: false };
      const isWanted = adds && policy.of(projectDir).adds;
      return { text: isWanted ? await sessionBlock(sessionId, projectDir) : '', isFirst: true };
    },
    prompt({ sessionId, prompt }: z.infer<typeof promptInput>): HookText {
      memory.capture.reportPrompt(sessionId, prompt);
      return NO_TEXT;
    },
    compact({ sessionId, done }: z.infer<typeof compactInput>): HookText {
      // Compaction drops turns, so they are summarized first.
      log.info(done ? 'the client has compacted; a new lineage begins' : 'the client compacts', { sessionId });
      return runLater(memory.capture.summarizeSession(sessionId), 'a compacted session was not summarized', sessionId);
    },
    async subagentStart({ sessionId, projectDir, agentType, agentId }: SubagentStart): Promise<HookText> {
      const { adds, scope } = policy.of(projectDir);
      if (!adds || scope === 'session') return NO_TEXT;
      const { library } = memory;
      const slice = await subagents.ofType(agentType, projectDir);
      const text = slice === null ? '' : await library.subscribedFacts({ ...slice.filter, sessionId }, projectDir);
      if (agentId !== '') subagents.note(agentId, { agent: agentType, because: slice?.because ?? '', text });
      return { text };
    },
    sessionEnd: ({ sessionId }: z.infer<typeof sessionInput>): HookText =>
      runLater(memory.capture.closeSession(sessionId), 'a session that ended was not closed', sessionId),
  };
}
