import { type FactFilter, filterFacts } from './facts/fact-block.ts';
import type { FactView } from './facts.ts';
import { factLines } from './pages/format-facts.ts';
import type { MemoryParts } from './parts.ts';

/** With the user's own; of every project where it is not given. */
type Where = { readonly projectDir?: string };

/** A fact, and where it comes from: `memories` are of the turn that says so, `session_title` may be ''. */
export type FactReason = Awaited<ReturnType<ReturnType<typeof createFactLibrary>['explainFact']>>;

/** What commands and tools read and erase of facts. */
export function createFactLibrary({ facts, config, getProject, turnRegistry, catalogue, snapshooter }: MemoryParts) {
  const getKey = ({ projectDir }: Where): string | null => (projectDir === undefined ? null : getProject(projectDir));
  return {
    /** By concept, the most salient first. */
    listFacts: (filter: Where) => facts.list(getKey(filter)),
    /** What facts may be about, by name. */
    listConcepts: facts.concepts,
    /** @throws CometError `not_found`, `ambiguous_id` */
    async explainFact(id: string, filter: Where) {
      const fact = await facts.find(id, getKey(filter));
      const nodes = turnRegistry.aliases(fact.turn_id).flatMap(catalogue.nodesCovering);
      const memories = [...new Set(nodes.flatMap((nodeId) => catalogue.current(nodeId)?.node_id ?? []))];
      return { ...fact, memories, session_title: turnRegistry.session(fact.session_id)?.title ?? '' };
    },
    /** One section with the facts that a filter names, within `facts.tokens`; '' without any. */
    async subscribedFacts(filter: FactFilter & { readonly sessionId: string }, projectDir: string): Promise<string> {
      await facts.refresh();
      const source = facts.current(getProject(projectDir));
      const rules = { sessionId: filter.sessionId, told: [], budgetTokens: config.facts.tokens };
      return source === null ? '' : factLines(filterFacts(source, filter), rules).join('\n');
    },
    /** Erases facts by id, or all of a concept, also in snapshots. @throws as `explainFact`; nothing is changed */
    async forgetFacts(names: readonly string[], filter: Where): Promise<readonly FactView[]> {
      const removal = await facts.forget(names, getKey(filter));
      await snapshooter.scrub(new Set(removal.map(({ id }) => id)), new Set(), () => true);
      return removal;
    },
  };
}
