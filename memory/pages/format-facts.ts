import { finishesWithin } from '../../common/async.ts';
import { countTokens } from '../../common/text.ts';
import { type Fact, isOfUser } from '../facts/fact.ts';
import { contextBlock, type FactSource, quoteValue } from '../facts/fact-block.ts';
import { conceptNamed } from '../facts/ontology.ts';
import type { BlockRequest, OpenBlock, ShownText } from '../recall/types.ts';
import { READ_MS, wasTold } from './library-block.ts';

type FactRules = Pick<BlockRequest, 'sessionId' | 'told'> & { readonly budgetTokens: number };

/** Facts for the system block that nothing else says, within a budget. */
export function factLines({ ontology, facts }: FactSource, { sessionId, told, budgetTokens }: FactRules): string[] {
  const fresh = facts.filter(({ value }) => !wasTold(value, told));
  return getLines({ ontology, facts: strongestFacts({ ontology, facts: fresh }, budgetTokens, sessionId) }, sessionId);
}

/** Those that a budget has room for: permanent ones first, then the most salient. */
function strongestFacts({ ontology, facts }: FactSource, budgetTokens: number, sessionId: string): Fact[] {
  const isPermanent = ({ concept }: Fact) => Number(conceptNamed(ontology, concept)?.persistence_class === 'permanent');
  const kept: Fact[] = [];
  for (const fact of facts.toSorted((a, b) => isPermanent(b) - isPermanent(a) || b.salience - a.salience)) {
    const lines = getLines({ ontology, facts: [...kept, fact] }, sessionId);
    if (lines.reduce((sum, line) => sum + countTokens(line), 0) <= budgetTokens) kept.push(fact);
  }
  return kept;
}

const CHANGED = 'Facts as they are now; where the system prompt says otherwise, these hold:';
const ENDED = 'no longer ';
/** What is negated in fewer characters may stand in another line for something else. */
const TELLING_CHARS = 8;
const FACT_LINE = /^- (no longer )?([A-Za-z0-9.]+): (?=")/;

/**
 * What was said since in other sessions, what the block lacks about the user, and what was shown and no longer is so;
 * lines that were shown are read again, so that each change is in one answer only. Other facts that the block had no room
 * for wait for the next one.
 */
export function changedFactLines(
  { ontology, facts, closed }: ChangingFacts,
  given: ShownText & { readonly sessionId: string; readonly budgetTokens: number },
): string[] {
  const { block, since, blockMs, sessionId, budgetTokens } = given;
  const shown = readShown([...block, ...since]);
  const getKey = ({ concept, value }: Fact): string => `${concept}: ${quoteValue(value)}`;
  const holding = new Set(facts.map(getKey));
  const others = block.filter((line) => !FACT_LINE.test(line));
  const isShown = (fact: Fact): boolean =>
    shown.get(getKey(fact)) ?? (fact.value.length >= TELLING_CHARS && wasTold(fact.value, others));
  const negated = new Set(closed.filter(isShown).map(getKey));
  let left = budgetTokens - countTokens(CHANGED);
  const ended = [...negated].flatMap((key) => {
    const line = `- ${ENDED}${key}`;
    if (holding.has(key) || countTokens(line) > left) return [];
    left -= countTokens(line);
    return [line];
  });
  const isDue = ({ concept, session_id, valid_from }: Fact): boolean =>
    session_id !== sessionId && (isOfUser(concept) || Date.parse(valid_from) >= blockMs);
  const fresh = facts.filter((fact: Fact): boolean => {
    const holds = shown.get(getKey(fact));
    return holds === undefined ? isDue(fact) && !wasTold(fact.value, others) : !holds;
  });
  const asserted = factLines({ ontology, facts: fresh }, { sessionId, told: [], budgetTokens: left });
  const lines = [...asserted.filter((line) => FACT_LINE.test(line)), ...ended];
  return lines.length === 0 ? [] : [CHANGED, ...lines];
}

/** Whether a fact was shown last as one that holds, by concept and value. */
function readShown(lines: readonly string[]): ReadonlyMap<string, boolean> {
  const shown = new Map<string, boolean>();
  for (const line of lines) {
    const [start = '', negation, concept] = FACT_LINE.exec(line) ?? [];
    if (concept === undefined) continue;
    for (const [value] of line.slice(start.length).matchAll(/"[^"]*"/g))
      shown.set(`${concept}: ${value}`, negation === undefined);
  }
  return shown;
}

function getLines(source: FactSource, sessionId: string): string[] {
  const text = contextBlock(source, { sessionId });
  return text === '' ? [] : text.split('\n');
}

export type ChangingFacts = FactSource & { readonly closed: readonly Fact[] };

type FactsNow = { refresh(): Promise<void>; current(project: string): FactSource | null };

/** The block with facts behind it, which do not repeat it. */
export function withFacts(block: OpenBlock, facts: FactsNow, budgetTokens: number): OpenBlock {
  return {
    ...block,
    // Reading facts waits while the facts of a turn are written.
    refresh: async () => void (await Promise.all([block.refresh(), finishesWithin(facts.refresh(), READ_MS)])),
    lines: (request: BlockRequest): readonly string[] => {
      const before = block.lines(request);
      const source = facts.current(request.project);
      if (source === null) return before;
      return [...before, ...factLines(source, { ...request, told: [...request.told, ...before], budgetTokens })];
    },
  };
}
