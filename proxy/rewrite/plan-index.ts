import type { ConversationView } from '../wire/conversation.ts';
import { type EpochPlan, isEmptyPlan, type Match, type PlanRecord, type PlanUse, type ServedUse } from './plan.ts';

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
  readonly #uses = new Map<string, PlanUse>();
  readonly #rewrittenSessions = new Set<string>();
  /** Least recently used first. */
  readonly #sessions = new Map<string, SessionPlans>();
  /** Evicted sessions and the lineage hashes that recognize them, in both directions. */
  readonly #evicted = new Map<string, readonly string[]>();
  readonly #evictedByMark = new Map<string, string>();

  apply(record: PlanRecord): void {
    if (record.kind === 'plan') {
      // Plans written before tool rounds could be cut have no `rounds`.
      const plan = { ...record.plan, rounds: record.plan.rounds ?? [] };
      this.#addPlan(plan);
      this.#addUse(record, plan);
      return;
    }
    const plan = this.#plans.get(record.planId);
    if (plan === undefined) return;
    if (record.kind === 'broken') this.#plans.set(plan.id, { ...plan, broken: record.broken });
    if (record.kind === 'injections')
      this.#addPlan({ ...plan, injections: [...plan.injections, ...record.injections] });
    if (record.kind !== 'broken') this.#addUse(record, plan);
  }

  #addPlan(plan: EpochPlan): void {
    this.#plans.set(plan.id, plan);
    if (!isEmptyPlan(plan)) this.#rewrittenSessions.add(plan.sessionId);
  }

  #addUse({ served, use }: ServedUse, { id, sessionId }: EpochPlan): void {
    const others = (this.#plansByServed.get(served) ?? []).filter((other) => other !== id);
    this.#plansByServed.set(served, [...others, id]);
    this.#uses.set(id, use);
    const session = this.#sessions.get(sessionId) ?? { plans: new Set(), served: new Set() };
    session.plans.add(id);
    session.served.add(served);
    this.#sessions.delete(sessionId);
    this.#sessions.set(sessionId, session);
  }

  /** Records that rebuild what the index has of this session. */
  recordsOf(sessionId: string): PlanRecord[] {
    const session = this.#sessions.get(sessionId);
    return [...(session?.plans ?? [])].flatMap((id) => {
      const plan = this.#plans.get(id) as EpochPlan;
      const use = this.#uses.get(id) as PlanUse;
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
   * The plan last used for the longest prefix of this conversation. Forks and resumed sessions find their parent's
   * plan; a rewound conversation finds the plan of that time. Before the first answer only plans of the session itself
   * match, because the same first prompt in another session is another conversation.
   *
   * @param scope  `answered` ignores prefixes without an answer in the session itself too
   */
  match(
    view: Pick<ConversationView, 'lineage' | 'infos'>,
    sessionId: string,
    scope: 'any' | 'answered' = 'any',
  ): Match | null {
    const firstAnswer = view.infos.findIndex((info) => info.role === 'assistant');
    for (let index = view.lineage.length - 1; index >= 0; index -= 1) {
      const ids = this.#plansByServed.get(view.lineage[index] as string) ?? [];
      const plans = ids.map((id) => this.#plans.get(id)).filter((plan) => plan !== undefined);
      const own = plans.filter((plan) => plan.sessionId === sessionId);
      const isAnswered = firstAnswer >= 0 && index >= firstAnswer;
      if (!isAnswered && scope === 'answered') return null;
      const plan = own.at(-1) ?? (isAnswered ? plans.at(-1) : undefined);
      if (plan !== undefined) return { plan, servedAt: index, lastUse: this.#uses.get(plan.id) as PlanUse };
    }
    return null;
  }

  /** Evicts the least recently used sessions until at most `maxSessions` remain. */
  evict(maxSessions: number, canEvict: (sessionId: string) => boolean = () => true): void {
    for (const [sessionId, session] of this.#sessions) {
      if (this.#sessions.size <= maxSessions) return;
      if (canEvict(sessionId)) this.#evictSession(sessionId, session);
    }
  }

  #evictSession(sessionId: string, { plans, served }: SessionPlans): void {
    this.#sessions.delete(sessionId);
    for (const id of plans) {
      this.#plans.delete(id);
      this.#uses.delete(id);
    }
    for (const hash of served) {
      const others = (this.#plansByServed.get(hash) ?? []).filter((id) => !plans.has(id));
      if (others.length > 0) this.#plansByServed.set(hash, others);
      else this.#plansByServed.delete(hash);
    }
    // A fork extends past the first answer, usually to the end; the first hash predates that answer.
    const [, second, third] = served;
    const marks = [second, third, [...served].at(-1)].filter((hash) => hash !== undefined);
    this.#evicted.set(sessionId, marks);
    for (const mark of marks) this.#evictedByMark.set(mark, sessionId);
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
