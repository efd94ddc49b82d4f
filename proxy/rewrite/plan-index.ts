import type { ConversationView } from '../wire/conversation.ts';
import { type EpochPlan, isEmptyPlan, type Match, type PlanRecord, type PlanUse } from './plan.ts';

/** What is held of a session: its plans, and every lineage that they served, oldest first. */
interface Held {
  readonly plans: Set<string>;
  readonly served: Set<string>;
}

/**
 * Plans by the lineages they were used for. Records applied in order give the same book again. Sessions that were not
 * used for long can be put away; a few of their lineages stay, by which they are asked for when they come back.
 */
export class PlanIndex {
  readonly #plans = new Map<string, EpochPlan>();
  readonly #servedBy = new Map<string, string[]>();
  readonly #uses = new Map<string, PlanUse>();
  readonly #rewritten = new Set<string>();
  /** The session used last at the end. */
  readonly #held = new Map<string, Held>();
  /** Sessions put away, each with what it is recognised by; and the other way round. */
  readonly #away = new Map<string, readonly string[]>();
  readonly #awayBy = new Map<string, string>();

  apply(record: PlanRecord): void {
    if (record.kind === 'plan') {
      const plan = { ...record.plan, rounds: record.plan.rounds ?? [] }; // plans of before rounds could be cut have none
      this.#put(plan);
      this.#serve(record, plan);
      return;
    }
    const plan = this.#plans.get(record.planId);
    if (plan === undefined) return;
    if (record.kind === 'broken') this.#plans.set(plan.id, { ...plan, broken: record.broken });
    if (record.kind === 'injections') this.#put({ ...plan, injections: [...plan.injections, ...record.injections] });
    if (record.kind !== 'broken') this.#serve(record, plan);
  }

  #put(plan: EpochPlan): void {
    this.#plans.set(plan.id, plan);
    if (!isEmptyPlan(plan)) this.#rewritten.add(plan.sessionId);
  }

  #serve({ served, use }: { readonly served: string; readonly use: PlanUse }, { id, sessionId }: EpochPlan): void {
    const others = (this.#servedBy.get(served) ?? []).filter((other) => other !== id);
    this.#servedBy.set(served, [...others, id]);
    this.#uses.set(id, use);
    const held = this.#held.get(sessionId) ?? { plans: new Set(), served: new Set() };
    held.plans.add(id);
    held.served.add(served);
    this.#held.delete(sessionId);
    this.#held.set(sessionId, held);
  }

  /** Records that give what is held of this session again. */
  recordsOf(sessionId: string): PlanRecord[] {
    const held = this.#held.get(sessionId);
    return [...(held?.plans ?? [])].flatMap((id) => {
      const plan = this.#plans.get(id) as EpochPlan;
      const use = this.#uses.get(id) as PlanUse;
      const served = [...(held?.served ?? [])].filter((lineage) => this.#servedBy.get(lineage)?.includes(id));
      const records = served.map((lineage) => ({ kind: 'served', planId: id, served: lineage, use }) as const);
      return [{ kind: 'plan', plan, served: served[0] ?? '', use } as const, ...records];
    });
  }

  /** Whether anything was ever rewritten in this session: then its thinking may be bound to bytes of ours. */
  knowsSession(sessionId: string): boolean {
    return this.#rewritten.has(sessionId);
  }

  /**
   * The plan last used for the longest prefix of this conversation: forks and resumes find their parent's, a
   * conversation that was rewound finds the one that was in force then. Before the first answer a conversation is
   * only its own session's: the same first prompt in another session is another conversation.
   *
   * @param reach  `answered`: only what goes beyond a first answer counts, in its own session too
   */
  match(
    view: Pick<ConversationView, 'lineage' | 'infos'>,
    sessionId: string,
    reach: 'any' | 'answered' = 'any',
  ): Match | null {
    const firstAnswer = view.infos.findIndex((info) => info.role === 'assistant');
    for (let index = view.lineage.length - 1; index >= 0; index -= 1) {
      const ids = this.#servedBy.get(view.lineage[index] as string) ?? [];
      const plans = ids.map((id) => this.#plans.get(id)).filter((plan) => plan !== undefined);
      const own = plans.filter((plan) => plan.sessionId === sessionId);
      const shared = firstAnswer >= 0 && index >= firstAnswer;
      if (!shared && reach === 'answered') return null;
      const plan = own.at(-1) ?? (shared ? plans.at(-1) : undefined);
      if (plan !== undefined) return { plan, servedAt: index, lastUse: this.#uses.get(plan.id) as PlanUse };
    }
    return null;
  }

  /** Lets go of those not used for longest, until no more than `most` sessions are held. */
  evict(most: number, mayGo: (sessionId: string) => boolean = () => true): void {
    for (const [sessionId, held] of this.#held) {
      if (this.#held.size <= most) return;
      if (mayGo(sessionId)) this.#letGo(sessionId, held);
    }
  }

  #letGo(sessionId: string, { plans, served }: Held): void {
    this.#held.delete(sessionId);
    for (const id of plans) {
      this.#plans.delete(id);
      this.#uses.delete(id);
    }
    for (const lineage of served) {
      const others = (this.#servedBy.get(lineage) ?? []).filter((id) => !plans.has(id));
      if (others.length > 0) this.#servedBy.set(lineage, others);
      else this.#servedBy.delete(lineage);
    }
    // A fork goes beyond the first answer, and mostly to the end; the first lineage is of before that.
    const [, second, third] = served;
    const marks = [second, third, [...served].at(-1)].filter((lineage) => lineage !== undefined);
    this.#away.set(sessionId, marks);
    for (const mark of marks) this.#awayBy.set(mark, sessionId);
  }

  /** Sessions put away whose plans this conversation may need, its own last. */
  evictedSessions(lineage: readonly string[], sessionId: string): string[] {
    if (this.#away.size === 0) return [];
    const parents = lineage.map((each) => this.#awayBy.get(each)).filter((parent) => parent !== undefined);
    const others = new Set(parents.filter((parent) => parent !== sessionId));
    return this.#away.has(sessionId) ? [...others, sessionId] : [...others];
  }

  /** All that is kept of the session is applied anew after this. */
  restore(sessionId: string): void {
    for (const mark of this.#away.get(sessionId) ?? []) {
      if (this.#awayBy.get(mark) === sessionId) this.#awayBy.delete(mark);
    }
    this.#away.delete(sessionId);
  }
}
