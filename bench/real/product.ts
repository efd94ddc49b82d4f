import path from 'node:path';
import { systemClock } from '../../common/async.ts';
import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { homePaths } from '../../common/paths.ts';
import { createClaudeImport } from '../../engine/api/import-claude.ts';
import { cutRule } from '../../engine/cut-config.ts';
import { type Memory, openBudget, openMemory } from '../../memory/index.ts';
import { FILTER_RULES, type FilterRules } from '../../memory/recall/relevance-filter.ts';
import { createProjectOf } from '../../memory/storage/fs/project-files.ts';
import { openJournal } from '../../memory/storage/fs/turn-log.ts';
import type { RunningRewriter } from '../../proxy/rewrite/index.ts';
import { createRedactor } from '../../redact/index.ts';
import { createMemoryPlanStore, openRewriter } from '../../test/helpers/open-rewriter.ts';
import { makeRequest } from '../../test/helpers/transcripts.ts';
import { type Corpus, PROJECT_DIR, type RealTurn } from './corpus.ts';

const FLUSH_MS = 3_600_000;
export const MODEL = 'claude-opus-5-5';
/** A prompt that recalls nothing. */
const NOTHING = 'hello';
/** The first lookups may miss their deadline. */
const TRIES = 5;

const RULES = { llm: 'local', compaction: { idleMs: 0 }, dream: { idleMinutes: 0 } };
const config = Config.parse(RULES);

/** Memory as the engine opens it, with the rules in charge. `recall` and `filter` may be changed between two questions. */
export async function openRealMemory(
  home: string,
  recall: Config['recall'] = config.recall,
  filter: FilterRules = FILTER_RULES,
): Promise<Memory> {
  const redactor = createRedactor({ markKey: Buffer.alloc(32, 7) });
  const store = { load: async () => null, save: async () => {} };
  const budget = await openBudget({ rule: config.models, store, clock: systemClock, log: silentLog });
  const claudeEnvironment = { env: {}, bundleFile: '', userCa: '', userProxy: {} };
  const paths = homePaths(path.join(home, '.comet-cc'));
  const env = { ...process.env };
  const parts = { env, paths, redactor, budget, usage: budget, claudeEnvironment, log: silentLog };
  return openMemory({ ...parts, config: { ...config, recall }, filter });
}

/** What `comet-cc import claude` does; resolves when memory is at rest. */
export async function importCorpus(memory: Memory, home: string): Promise<{ readonly added: number }> {
  const claude = createClaudeImport({
    imports: memory.imports,
    tokensToday: () => 0,
    done: { load: async () => [], add: async () => {} },
    hasModel: false,
    getProject: createProjectOf(Date.now),
    captures: () => true,
    now: Date.now,
  });
  const report = await claude.run({ claudeDir: path.join(home, '.claude'), dryRun: false, llm: 'local' });
  if (report.problems.length > 0) throw new Error(`the import failed: ${report.problems[0]?.message}`);
  if (!(await memory.maintenance.flush(FLUSH_MS))) throw new Error('memory did not come to rest');
  return report;
}

/** The turn of the corpus that a turn of memory is: the one of its session that its time lies in. */
export async function readTurnMap(home: string, corpus: Corpus): Promise<ReadonlyMap<string, RealTurn>> {
  const journal = await openJournal({
    dir: homePaths(path.join(home, '.comet-cc')).journalDir,
    report: () => undefined,
  });
  const known = new Map<string, RealTurn>();
  for (const sessionId of await journal.sessions()) {
    const own = corpus.turns.filter((turn) => turn.sessionId === sessionId);
    for (const { turnId, atMs } of await journal.read(sessionId)) {
      const turn = own.find(({ startMs, endMs }) => startMs <= atMs && atMs <= endMs);
      if (turn !== undefined) known.set(turnId, turn);
    }
  }
  await journal.close();
  return known;
}

export interface Injected {
  /** What recall adds for the prompt, beside it or in the block. */
  readonly recalled: string;
  /** The block of the system prompt that every new session begins with. */
  readonly block: string;
  readonly ms: number;
}

export interface Asker {
  /** Sends the prompt as the first one of a new session. */
  send(prompt: string): Promise<Injected>;
  /** Lookups that missed the deadline. */
  misses(): number;
}

/** The product's rewriter in front of this memory, with the deadline of its configuration unless told. */
export async function openAsker(memory: Memory, memoryDeadlineMs = config.recall.deadlineMs): Promise<Asker> {
  let misses = 0;
  let sent = 0;
  const warn = (message: string): void => {
    if (message.includes('lookup')) misses += 1;
  };
  const rewriter: RunningRewriter = await openRewriter({
    memory: { ...memory.capture, ...memory.recall },
    plans: createMemoryPlanStore(),
    config: { ...config.inject, memoryDeadlineMs, cut: cutRule(config.trim) },
    clock: systemClock,
    randomHex: (bytes) => (sent * 1_000 + misses).toString(16).padStart(bytes * 2, '0'),
    log: { ...silentLog, warn },
  });
  const ask = async (prompt: string) => {
    sent += 1;
    const plan = {
      model: MODEL,
      sessionId: `asker-${memoryDeadlineMs}-${sent}`,
      cwd: PROJECT_DIR,
      ttl: '1h' as const,
      turns: [],
    };
    const history = [{ role: 'user', content: [{ type: 'text', text: prompt }] }];
    const { bytes: body, headers } = makeRequest(plan, history, { index: 0, turn: 0, round: 0, answer: [] });
    const startMs = performance.now();
    const message = { requestId: String(sent), path: 'messages', headers, body, receivedAtMs: Date.now() } as const;
    const outcome = await rewriter.rewrite(message, new AbortController().signal);
    const ms = performance.now() - startMs;
    const [before, now] = [getTexts(body), getTexts(outcome.body)];
    const fresh = (part: 'messages' | 'system'): string =>
      now[part].filter((text) => !before[part].includes(text)).join('\n');
    return { recalled: fresh('messages'), block: fresh('system'), ms };
  };
  let standing = await ask(NOTHING);
  for (let again = 0; standing.block === '' && again < TRIES; again += 1) standing = await ask(NOTHING);
  misses = 0;
  const { block } = standing;
  const always = new Set(block.split('\n'));
  return {
    misses: () => misses,
    async send(prompt) {
      const { recalled, block: whole, ms } = await ask(prompt);
      const added = whole.split('\n').filter((line) => !always.has(line));
      return { recalled: [recalled, ...added].filter((text) => text !== '').join('\n'), block, ms };
    },
  };
}

interface Body {
  readonly messages: readonly { readonly content: unknown }[];
  readonly system: unknown;
}

/** Every text of a request: prompts, answers, tool calls and results, system. */
export function textsIn(body: Buffer): string[] {
  const { messages, system } = JSON.parse(body.toString('utf8')) as Body;
  return [...texts(system), ...messages.flatMap(({ content }) => [...texts(content), ...toolTexts(content)])];
}

function toolTexts(content: unknown): string[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap(({ input, content: result }: { input?: unknown; content?: unknown }) => [
    ...(input === undefined ? [] : [JSON.stringify(input)]),
    ...texts(result),
  ]);
}

export function getTexts(body: Buffer): { readonly messages: readonly string[]; readonly system: readonly string[] } {
  const { messages, system } = JSON.parse(body.toString('utf8')) as Body;
  return { messages: messages.flatMap(({ content }) => texts(content)), system: texts(system) };
}

function texts(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return Array.isArray(content) ? content.flatMap(({ text }: { text?: string }) => text ?? []) : [];
}
