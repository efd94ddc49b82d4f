import { countTokens } from '../../common/text.ts';
import type { PlanRecord } from '../../proxy/rewrite/plan.ts';

/** Mean tokens of what memory put into the requests. */
export function measureAdded(records: readonly PlanRecord[], prompts: number) {
  const plans = records.flatMap((record) => (record.kind === 'plan' ? [record.plan] : []));
  const started = plans.filter(({ epoch }) => epoch === 0);
  const cuts = new Map(plans.flatMap(({ cut }) => (cut === null ? [] : [[cut.through, cut]])));
  const rounds = new Map(plans.flatMap((plan) => plan.rounds.map((cut) => [cut.through, cut])));
  const recalls = new Map(
    records
      .flatMap((record) =>
        'injections' in record ? record.injections : record.kind === 'plan' ? record.plan.injections : [],
      )
      .map((injection) => [injection.anchor + injection.channel, injection.text]),
  );
  return {
    start: mean(started.map(({ systemBlock }) => (systemBlock === null ? 0 : countTokens(systemBlock)))),
    recall: mean([...recalls.values()].map(countTokens)),
    recallShare: recalls.size / Math.max(1, prompts),
    cut: { ...preambles([...cuts.values()]) },
    rounds: { ...preambles([...rounds.values()]) },
  };
}

/** Tokens of a preamble, and of each node in it. */
function preambles(cuts: readonly { readonly preamble: string; readonly nodeIds: readonly string[] }[]) {
  const tokens = cuts.map(({ preamble }) => countTokens(preamble));
  const nodes = cuts.reduce((sum, { nodeIds }) => sum + nodeIds.length, 0);
  return { count: cuts.length, tokens: mean(tokens), perNode: tokens.reduce((a, b) => a + b, 0) / Math.max(1, nodes) };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
