import { countTokens } from '../../common/text.ts';
import type { Fact } from '../facts/fact.ts';
import { contextBlock, type FactSource } from '../facts/fact-block.ts';
import { conceptNamed } from '../facts/ontology.ts';
import type { BlockRequest, OpenBlock } from '../recall/types.ts';
import { wasTold } from './library-block.ts';

interface FactRules extends Pick<BlockRequest, 'sessionId' | 'told'> {
  readonly budgetTokens: number;
}

/** Facts for the system block that nothing else says, within a budget: permanent ones first, then the most salient. */
export function factLines({ ontology, facts }: FactSource, { sessionId, told, budgetTokens }: FactRules): string[] {
  const isPermanent = ({ concept }: Fact): number =>
    Number(conceptNamed(ontology, concept)?.persistence_class === 'permanent');
  const fresh = facts
    .filter(({ value }) => !wasTold(value, told))
    .toSorted((one, other) => isPermanent(other) - isPermanent(one) || other.salience - one.salience);
  const kept: Fact[] = [];
  let lines: string[] = [];
  for (const fact of fresh) {
    const longer = contextBlock({ ontology, facts: [...kept, fact] }, { sessionId }).split('\n');
    if (longer.reduce((sum, line) => sum + countTokens(line), 0) > budgetTokens) continue;
    kept.push(fact);
    lines = longer;
  }
  return lines.filter((line) => line !== '');
}

interface FactsNow {
  refresh(): Promise<void>;
  current(project: string): FactSource | null;
}

/** The block with facts behind it, which do not repeat it. */
export function withFacts(block: OpenBlock, facts: FactsNow, budgetTokens: number): OpenBlock {
  const linesOf = (request: BlockRequest): readonly string[] => {
    const before = block.lines(request);
    const source = facts.current(request.project);
    if (source === null) return before;
    return [...before, ...factLines(source, { ...request, told: [...request.told, ...before], budgetTokens })];
  };
  return {
    ...block,
    refresh: async () => void (await Promise.all([block.refresh(), facts.refresh()])),
    lines: linesOf,
    async text(project) {
      const [before] = await Promise.all([block.text(project), facts.refresh()]);
      const source = facts.current(project);
      const told = before.split('\n');
      const own = source === null ? [] : factLines(source, { sessionId: '', told, budgetTokens });
      return [...(before === '' ? [] : [before]), ...own].join('\n');
    },
  };
}
