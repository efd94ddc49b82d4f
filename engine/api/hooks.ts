import type { Config } from '../../common/config.ts';
import type { Log } from '../../common/log.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { Memory, MemoryLine } from '../../memory/index.ts';
import { type Line, renderRetrieval, renderSystemBlock } from '../../proxy/rewrite/injected-text.ts';
import type { ConsentBook } from '../policy/index.ts';
import type { Handlers, HookText } from './contract.ts';

export type HookHandlers = Pick<Handlers, Extract<keyof Handlers, `hooks/${string}`>>;

export interface HookDeps {
  readonly memory: Pick<Memory, 'standing' | 'recall' | 'list' | 'settle' | 'closeSession'>;
  readonly consent: Pick<ConsentBook, 'of'>;
  readonly inject: Config['inject'];
  readonly recallMs: number;
  readonly log: Log;
  readonly now: () => number;
}

const NOTHING: HookText = { text: '' };
/** A hook that is installed twice, by settings and as a plugin, asks twice at once. */
const TWICE_MS = 5_000;
const SESSIONS = 500;

/**
 * What Claude Code's hooks ask and tell. Only lines of clean origin are given: what a hook says stands in a system
 * reminder. What takes longer than a hook may goes on after the answer.
 */
export function createHookHandlers({ memory, consent, inject, recallMs, log, now }: HookDeps): HookHandlers {
  const started = new Map<string, number>();
  const shown = new Map<string, Set<string>>();

  function startedJustNow(sessionId: string): boolean {
    const before = started.get(sessionId) ?? Number.NEGATIVE_INFINITY;
    bounded(started).set(sessionId, now());
    return now() - before < TWICE_MS;
  }

  /** What a session starts with: its system block where the proxy is, else said by the hook of its start. */
  async function startOf(sessionId: string, projectDir: string): Promise<{ text: string; lines: readonly string[] }> {
    const { brief, lines } = await memory.standing(sessionId, projectDir);
    const block = renderSystemBlock({ brief, lines: lines.map(asLine), budgetTokens: inject.systemTokens });
    const told = lines.filter(({ nodeId }) => block?.nodeIds.includes(nodeId));
    return { text: block?.text ?? '', lines: told.map(({ text }) => text) };
  }

  function goOn(work: Promise<unknown>, what: string, sessionId: string): HookText {
    // A session that went past us is not known, which is no fault.
    work.catch((error: unknown) => log.info(what, { sessionId, error }));
    return NOTHING;
  }

  return {
    async 'hooks/session-start'({ sessionId, projectDir }) {
      if (!consent.of(projectDir).adds || startedJustNow(sessionId)) return NOTHING;
      const { text } = await startOf(sessionId, projectDir);
      return { text };
    },
    async 'hooks/prompt'({ sessionId, projectDir, prompt, recent }, left) {
      if (inject.retrieval !== 'hook' || !consent.of(projectDir).adds) return NOTHING;
      const known = shown.get(sessionId);
      // What was said in this conversation stands in it, or in its preamble.
      const own = memory.list({ sessionId, all: true }).flatMap(({ turns }) => turns);
      const [start, hits] = await Promise.all([
        known === undefined ? startOf(sessionId, projectDir) : { lines: [] },
        memory.recall(
          { sessionId, projectDir, prompt, recent, visibleTurns: new Set(own), shown: known ?? new Set() },
          AbortSignal.any([left, AbortSignal.timeout(recallMs)]),
        ),
      ]);
      // Installed twice, by settings and as a plugin, the hook asks twice at once.
      const told = shown.get(sessionId) ?? new Set(start.lines);
      bounded(shown).set(sessionId, told);
      const lines = hits.map(({ line }) => asLine(line)).filter(({ text }) => !told.has(text));
      const [recalled] = renderRetrieval(lines, {
        mode: 'system-message',
        takesSystemMessages: true,
        budgetTokens: inject.retrievalTokens,
        fence: '',
        anchor: '',
      });
      // A hook that has given up shows nothing.
      if (left.aborted) return NOTHING;
      for (const { nodeId, text } of lines) if (recalled?.nodeIds.includes(nodeId)) told.add(text);
      return { text: recalled?.text ?? '' };
    },
    'hooks/compact'({ sessionId, done }) {
      // What it forgets has to be memory before; the summary begins a new lineage, in which nothing was shown yet.
      log.info(done ? 'the client has compacted; a new lineage begins' : 'the client compacts', { sessionId });
      if (done) shown.delete(sessionId);
      return goOn(memory.settle(sessionId), 'a compacted session was not made into memory', sessionId);
    },
    'hooks/session-end': ({ sessionId }) =>
      goOn(memory.closeSession(sessionId), 'a session that ended was not closed', sessionId),
  };
}

function asLine({ nodeId, text, origin }: MemoryLine): Line {
  return { nodeId, text, clean: isCleanOrigin(origin) };
}

/** The same map, the oldest entry left out where it is full. */
function bounded<V>(map: Map<string, V>): Map<string, V> {
  const [oldest] = map.keys();
  if (map.size >= SESSIONS && oldest !== undefined) map.delete(oldest);
  return map;
}
