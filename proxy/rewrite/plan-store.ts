import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { createKeyedMutex } from '../../common/async.ts';
import type { Problem } from '../../common/errors.ts';
import { appendTo, ensureDir } from '../../common/files.ts';
import { LruMap } from '../../common/map.ts';
import { parseJson, sha256 } from '../../common/text.ts';
import type { ProxyLog } from '../ports.ts';
import type { ConversationView } from '../wire/conversation.ts';
import {
  type EpochPlan,
  isEmptyPlan,
  locatePlan,
  type Match,
  type PlanRecord,
  type PlanUse,
  type ServedUse,
} from './plan.ts';

/** Persists epoch plans. Without them a restart would send the whole history upstream, which would be refused. */
export type PlanStore = ReturnType<typeof openPlanStore>;

const CONCURRENT_READS = 32;

/** One JSON line per record, one file per session. */
export function openPlanStore(dir: string) {
  const lock = createKeyedMutex();
  const writing = new Set<Promise<void>>();
  const unreadable: Problem[] = [];
  const knownFiles = new Set<string>();
  let unwritable: Problem | null = null;

  const reportUnreadable = (file: string, error: unknown): void => {
    const message = `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}); its sessions start without plans`;
    unreadable.push({ file, message });
  };

  const readRecords = async (name: string): Promise<PlanRecord[]> => {
    const file = path.join(dir, name);
    try {
      return (await readFile(file, 'utf8')).split('\n').flatMap(parseLine);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') reportUnreadable(file, error);
      return [];
    }
  };

  return {
    /** The records of each session in order; the session written last comes first. */
    async *load(): AsyncGenerator<readonly PlanRecord[]> {
      const names = await listFiles(dir).catch((error: Error): string[] => {
        reportUnreadable(dir, error.cause ?? error);
        return [];
      });
      for (const name of names) knownFiles.add(name);
      for (let at = 0; at < names.length; at += CONCURRENT_READS)
        yield* await Promise.all(names.slice(at, at + CONCURRENT_READS).map(readRecords));
    },
    /** The records of one session. Like `load`, it skips unreadable records and reports them as problems. */
    read(sessionId: string): Promise<readonly PlanRecord[]> {
      const name = fileName(sessionId);
      return lock(name, () => readRecords(name));
    },
    /**
     * Records of a session keep their order.
     * @param durable  resolve once the record is on disk (fsynced)
     * @param whole    the session's other records, written again when its file was deleted
     */
    async append(
      sessionId: string,
      record: PlanRecord,
      durable: boolean,
      whole: () => readonly PlanRecord[] = () => [],
    ): Promise<void> {
      const name = fileName(sessionId);
      const line = formatLine(record);
      const getText = (isEmpty: boolean): string =>
        isEmpty && knownFiles.has(name) ? whole().map(formatLine).join('') + line : line;
      const task = lock(name, async () => {
        try {
          await appendTo(path.join(dir, name), getText, durable);
          knownFiles.add(name);
          unwritable = null;
        } catch (error) {
          const { message } = error as Error;
          unwritable = { file: dir, message: `plans cannot be written, so nothing new is trimmed: ${message}` };
          throw error;
        }
      });
      writing.add(task);
      await task.finally(() => writing.delete(task));
    },
    problems: (): readonly Problem[] => (unwritable === null ? [...unreadable] : [...unreadable, unwritable]),
    async close(): Promise<void> {
      await Promise.allSettled(writing);
    },
  };
}

async function listFiles(dir: string): Promise<string[]> {
  await ensureDir(dir);
  const names = (await readdir(dir)).filter((name) => name.endsWith('.jsonl')).sort();
  const files = names.map(async (name) => ({ name, atMs: (await stat(path.join(dir, name))).mtimeMs }));
  return (await Promise.all(files)).sort((a, b) => b.atMs - a.atMs).map(({ name }) => name);
}

/** The leading newline separates the record from a torn line before it. */
const formatLine = (record: PlanRecord): string => `\n${JSON.stringify(record)}`;

function fileName(sessionId: string): string {
  const isSafe = /^[A-Za-z0-9-]{1,64}$/.test(sessionId);
  return `${isSafe ? sessionId : sha256(sessionId, 32)}.jsonl`;
}

const text = z.string();
const Injections = z.array(z.looseObject({ anchor: text, channel: z.enum(['system', 'block']), text }));
const Cut = z.looseObject({
  through: text,
  merged: z.literal(true).optional(),
  preamble: text,
  nodeIds: z.array(text),
});
const Plan = z.looseObject({
  id: text,
  sessionId: text,
  epoch: z.number(),
  cut: Cut.nullable(),
  rounds: z.array(Cut.extend({ after: text })),
  strippedThrough: text.nullable(),
  systemBlock: text.nullable(),
  injections: Injections,
});
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  plan: z.looseObject({ plan: Plan, served: text }),
  injections: z.looseObject({ planId: text, injections: Injections, served: text }),
};
const OTHER = z.looseObject({ kind: text, planId: text });

/** Skips damaged lines. A line torn by a crash holds a record that was not in use yet. */
function parseLine(line: string): PlanRecord[] {
  if (line === '') return [];
  const record = parseJson(line) as PlanRecord | null | undefined;
  return (SCHEMAS[record?.kind ?? ''] ?? OTHER).safeParse(record).success ? [record as PlanRecord] : [];
}

/** Plans in use, in memory; all plans are on disk. */
export type PlanCache = Awaited<ReturnType<typeof openPlanCache>>;

/** More sessions than are in use at one time. */
const MAX_SESSIONS = 64;
const MAX_SIGNATURES = 10_000;

/** @throws what the plan store throws while loading */
export async function openPlanCache(plans: PlanStore, log: ProxyLog, maxSessions = MAX_SESSIONS) {
  const index = new PlanIndex();
  /** Sessions with a record that failed to be written: evicting them would lose it. */
  const unwritten = new Set<string>();
  const loading = new Map<string, Promise<void>>();

  function apply(records: readonly PlanRecord[]): void {
    for (const record of records) index.apply(record);
    index.evict(maxSessions, (sessionId) => !unwritten.has(sessionId));
  }

  function applySent(record: PlanRecord): void {
    if ('served' in record) index.expectAnswers(record.served);
    apply([record]);
  }

  /** A read never evicts; eviction happens on the next write, so a lookup can hold everything it loads. */
  function restore(sessionId: string): Promise<void> {
    const underway =
      loading.get(sessionId) ??
      plans.read(sessionId).then((records) => {
        index.restore(sessionId);
        for (const record of records) index.apply(record);
        loading.delete(sessionId);
      });
    loading.set(sessionId, underway);
    return underway;
  }

  const files = plans.load();
  const newest: (readonly PlanRecord[])[] = [];
  for (let next = await files.next(); !next.done; next = await files.next()) {
    newest.unshift(next.value);
    if (newest.length === maxSessions) break;
  }
  for (const records of newest) apply(records);
  let reading: Promise<void> | null = readOthers().finally(() => {
    reading = null;
  });

  /** Keeps only what recognizes a session. With thousands of them this takes seconds. */
  async function readOthers(): Promise<void> {
    for await (const records of files) {
      const own = records.find((record) => record.kind === 'plan')?.plan.sessionId;
      if (own === undefined || index.knows(own)) continue;
      for (const record of records) index.apply(record);
      index.evictSession(own);
    }
  }

  return {
    index,
    /** Loads the evicted plans that this conversation may match. Never rejects. @param onWait  before a long wait */
    async load(lineage: readonly string[], sessionId: string, onWait: () => void = () => {}): Promise<void> {
      if (reading !== null && !index.knows(sessionId)) await restore(sessionId);
      // A fork may continue a session that is not read yet. Before the third message there is no answer.
      if (reading !== null && lineage.length > 2 && !index.knows(sessionId)) {
        onWait();
        await reading;
      }
      for (const id of index.evictedSessions(lineage, sessionId)) await restore(id);
    },
    /** Resolves once the record is durable; the record is applied only then. */
    async save(sessionId: string, record: PlanRecord): Promise<void> {
      await plans.append(sessionId, record, true, () => index.getRecords(sessionId));
      applySent(record);
    },
    /** Applies the record now and writes it in the background. */
    saveLater(sessionId: string, record: PlanRecord): void {
      applySent(record);
      plans
        .append(sessionId, record, false, () => index.getRecords(sessionId))
        .catch((error: unknown) => {
          unwritten.add(sessionId);
          log.warn('plan record not written', { sessionId, error });
        });
    },
  };
}

/** The plans of one session, and the lineage hashes that they served, oldest first. */
interface SessionPlans {
  readonly plans: Set<string>;
  readonly served: Set<string>;
}

/**
 * Plans by the lineage hashes they served. Applying the same records in order gives the same index. Sessions that are
 * not in use can be evicted; a few of their lineage hashes stay, so that a conversation that needs them is recognized.
 */
export class PlanIndex {
  readonly #plans = new Map<string, EpochPlan>();
  readonly #plansByServed = new Map<string, string[]>();
  readonly #uses = new Map<string, readonly PlanUse[]>();
  /** Of the answers to requests with these lineage hashes. */
  readonly #signatures = new LruMap<string, readonly string[]>(MAX_SIGNATURES);
  readonly #rewrittenSessions = new Set<string>();
  /** Least recently used first. */
  readonly #sessions = new Map<string, SessionPlans>();
  /** Evicted sessions and the lineage hashes that recognize them, in both directions. */
  readonly #evicted = new Map<string, readonly string[]>();
  readonly #evictedByMark = new Map<string, string>();

  apply(record: PlanRecord): void {
    if (record.kind === 'plan') {
      this.#addPlan(record.plan);
      this.#addUse(record, record.plan);
      return;
    }
    const plan = this.#plans.get(record.planId);
    if (plan === undefined) return;
    if (record.kind === 'unsent') {
      this.#forget(plan, record.added);
      return;
    }
    if (record.kind === 'broken') this.#plans.set(plan.id, { ...plan, broken: record.broken });
    if (record.kind === 'injections')
      this.#addPlan({ ...plan, injections: [...plan.injections, ...record.injections] });
    if (record.kind !== 'broken') this.#addUse(record, plan);
  }

  #forget(plan: EpochPlan, added: number | null): void {
    if (added !== null) {
      this.#plans.set(plan.id, { ...plan, injections: plan.injections.slice(0, plan.injections.length - added) });
      return;
    }
    this.#plans.delete(plan.id);
    this.#uses.delete(plan.id);
    const own = this.#sessions.get(plan.sessionId)?.plans;
    own?.delete(plan.id);
    this.#unlink(this.#plansByServed.keys(), new Set([plan.id]));
    const sent = [...(own ?? [])].map((id) => this.#plans.get(id) as EpochPlan);
    if (!sent.some((each) => !isEmptyPlan(each) && each.slice === undefined))
      this.#rewrittenSessions.delete(plan.sessionId);
  }

  #addPlan(plan: EpochPlan): void {
    this.#plans.set(plan.id, plan);
    if (!isEmptyPlan(plan) && plan.slice === undefined) this.#rewrittenSessions.add(plan.sessionId);
  }

  #addUse({ served, use }: ServedUse, { id, sessionId }: EpochPlan): void {
    const others = (this.#plansByServed.get(served) ?? []).filter((other) => other !== id);
    this.#plansByServed.set(served, [...others, id]);
    const otherUses = (this.#uses.get(id) ?? []).filter(
      ({ model, effort }) => model !== use.model || effort !== use.effort,
    );
    this.#uses.set(id, [...otherUses, use]);
    const session = this.#sessions.get(sessionId) ?? { plans: new Set(), served: new Set() };
    session.plans.add(id);
    session.served.add(served);
    this.#sessions.delete(sessionId);
    this.#sessions.set(sessionId, session);
  }

  /** From its first use on, all answers to a request are known, and another one came past the proxy. */
  expectAnswers(served: string): void {
    if (!this.#plansByServed.has(served)) this.#signatures.set(served, []);
  }

  noteAnswer(served: string, signature: string): void {
    const known = this.#signatures.get(served);
    if (known !== undefined) this.#signatures.set(served, [...known, signature]);
  }

  /** Records that rebuild what the index has of this session. */
  getRecords(sessionId: string): PlanRecord[] {
    const session = this.#sessions.get(sessionId);
    return [...(session?.plans ?? [])].flatMap((id) => {
      const plan = this.#plans.get(id) as EpochPlan;
      const use = this.#uses.get(id)?.at(-1) as PlanUse;
      const served = [...(session?.served ?? [])].filter((hash) => this.#plansByServed.get(hash)?.includes(id));
      const records = served.map((hash) => ({ kind: 'served', planId: id, served: hash, use }) as const);
      return [{ kind: 'plan', plan, served: served[0] ?? '', use } as const, ...records];
    });
  }

  /** Whether a plan ever changed bytes in this session: then its thinking may be bound to the changed prefix. */
  wasRewritten(sessionId: string): boolean {
    return this.#rewrittenSessions.has(sessionId);
  }

  /**
   * The plan last used for the longest prefix of this conversation that the session itself sent; a rewound conversation
   * finds the plan of that time. Without one, forks and resumed sessions find their parent's plan: a prefix without an
   * answer in another session is another conversation, and a session that sent a prefix itself is no fork from there on,
   * even where its answers read the same, because their thinking is bound to what it sent.
   * @param scope  `answered` ignores prefixes without an answer in the session itself too; `subagent` knows the plans of
   *   subagents only, all others do not know them
   */
  match(
    view: Pick<ConversationView, 'lineage' | 'infos'>,
    sessionId: string,
    scope: 'any' | 'answered' | 'subagent' = 'any',
  ): Match | null {
    const firstAnswer = view.infos.findIndex((info) => info.role === 'assistant');
    let parents: Match | null = null;
    for (let index = view.lineage.length - 1; index >= 0; index -= 1) {
      const isAnswered = firstAnswer >= 0 && index >= firstAnswer;
      const ids = this.#plansByServed.get(view.lineage[index] as string) ?? [];
      const plans = ids
        .map((id) => this.#plans.get(id))
        .filter((plan) => plan !== undefined && (plan.slice !== undefined) === (scope === 'subagent')) as EpochPlan[];
      const toMatch = (plan: EpochPlan): Match => {
        const signatures = this.#signatures.get(view.lineage[index] as string) ?? [];
        return { plan, servedAt: index, signatures, uses: this.#uses.get(plan.id) ?? [] };
      };
      const own = plans.findLast((plan) => plan.sessionId === sessionId);
      if (own !== undefined) return isAnswered || scope !== 'answered' ? toMatch(own) : null;
      const other = plans.at(-1);
      if (isAnswered && other !== undefined) parents ??= toMatch(other);
    }
    return parents;
  }

  /** The session's newest plan, where it changed this conversation up to a message that no other plan was used behind. */
  matchChanged({ lineage }: Pick<ConversationView, 'lineage'>, sessionId: string, than: Match | null): Match | null {
    const id = [...(this.#sessions.get(sessionId)?.plans ?? [])].at(-1) ?? '';
    const plan = this.#plans.get(id);
    const servedAt = (plan === undefined ? null : locatePlan(plan, lineage))?.stripEnd ?? 0;
    if (plan === undefined || servedAt - 1 < Math.max(0, than?.servedAt ?? 0)) return null;
    return { plan, servedAt: servedAt - 1, signatures: [], uses: this.#uses.get(id) ?? [] };
  }

  /** Evicts the least recently used sessions until at most `maxSessions` remain. */
  evict(maxSessions: number, canEvict: (sessionId: string) => boolean = () => true): void {
    for (const [sessionId, session] of this.#sessions) {
      if (this.#sessions.size <= maxSessions) return;
      if (canEvict(sessionId)) this.evictSession(sessionId, session);
    }
  }

  evictSession(sessionId: string, { plans, served } = this.#sessions.get(sessionId) as SessionPlans): void {
    this.#sessions.delete(sessionId);
    for (const id of plans) {
      this.#plans.delete(id);
      this.#uses.delete(id);
    }
    this.#unlink(served, plans);
    // A fork extends past the first answer, usually to the end; the first hash predates that answer.
    const [, second, third] = served;
    const marks = [second, third, [...served].at(-1)].filter((hash) => hash !== undefined);
    this.#evicted.set(sessionId, marks);
    for (const mark of marks) this.#evictedByMark.set(mark, sessionId);
  }

  #unlink(served: Iterable<string>, plans: ReadonlySet<string>): void {
    for (const hash of served) {
      const others = (this.#plansByServed.get(hash) ?? []).filter((id) => !plans.has(id));
      if (others.length > 0) this.#plansByServed.set(hash, others);
      else this.#plansByServed.delete(hash);
    }
  }

  /** Whether the session has plans here or was evicted. */
  knows(sessionId: string): boolean {
    return this.#sessions.has(sessionId) || this.#evicted.has(sessionId);
  }

  /** Evicted sessions whose plans this conversation may match; its own session is last. */
  evictedSessions(lineage: readonly string[], sessionId: string): string[] {
    if (this.#evicted.size === 0) return [];
    const parents = lineage.map((hash) => this.#evictedByMark.get(hash)).filter((parent) => parent !== undefined);
    const others = new Set(parents.filter((parent) => parent !== sessionId));
    return this.#evicted.has(sessionId) ? [...others, sessionId] : [...others];
  }

  /** Ends the eviction of a session; the caller applies its records next. */
  restore(sessionId: string): void {
    for (const mark of this.#evicted.get(sessionId) ?? []) {
      if (this.#evictedByMark.get(mark) === sessionId) this.#evictedByMark.delete(mark);
    }
    this.#evicted.delete(sessionId);
  }
}
