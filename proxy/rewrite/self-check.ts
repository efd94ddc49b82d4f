import type { ConversationCache, ConversationView } from '../wire/conversation.ts';
import { type MessageShape, shapeMessage } from '../wire/request-shape.ts';
import type { Spliced } from '../wire/splice.ts';
import { checkRequest, type Refusal } from '../wire/validate/index.ts';
import type { EpochPlan } from './plan.ts';

/** What the API would refuse in the rewritten request; null when it would be taken. */
export function selfCheck(
  view: ConversationView,
  plan: EpochPlan,
  spliced: Spliced,
  betas: readonly string[],
  cache: ConversationCache,
): Refusal | null {
  const head = cache.head(view, betas);
  const system = plan.systemBlock === null ? head.system : [...head.system, { type: 'text' }];
  const messages = spliced.messages.map((message) =>
    typeof message === 'number'
      ? (view.infos[message]?.shape as MessageShape)
      : shapeMessage(JSON.parse(message.toString('utf8'))),
  );
  return checkRequest({ ...head, system, bytes: spliced.body.length, messages }, 'rewritten');
}

/** What the API would refuse in the request as received. */
export function checkReceived(
  view: ConversationView,
  betas: readonly string[],
  cache: ConversationCache,
): Refusal | null {
  const messages = view.infos.map((info) => info.shape);
  return checkRequest({ ...cache.head(view, betas), bytes: view.body.length, messages }, 'rewritten');
}
