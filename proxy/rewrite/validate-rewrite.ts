import type { ApiError } from '../wire/api-error.ts';
import type { ConversationCache } from '../wire/conversation.ts';
import { type MessageShape, shapeMessage } from '../wire/request-shape.ts';
import { checkRequest } from '../wire/validate/index.ts';
import type { Spliced } from './apply-plan.ts';
import type { EpochPlan } from './plan.ts';
import type { RequestContext } from './request-context.ts';

/** The error that the API would return for the rewritten request; null when it is valid. */
export function validateRewrite(
  { view }: RequestContext,
  plan: EpochPlan,
  spliced: Spliced,
  cache: ConversationCache,
): ApiError | null {
  const head = cache.head(view);
  const system = plan.systemBlock === null ? head.system : [...head.system, { type: 'text' }];
  const messages = spliced.messages.map((message) =>
    typeof message === 'number'
      ? (view.infos[message]?.shape as MessageShape)
      : shapeMessage(JSON.parse(message.toString('utf8'))),
  );
  return checkRequest({ ...head, system, bytes: spliced.body.length, messages });
}

/** The error that the API would return for the request as received. */
export function validateReceived({ view }: RequestContext, cache: ConversationCache): ApiError | null {
  const messages = view.infos.map((info) => info.shape);
  return checkRequest({ ...cache.head(view), bytes: view.body.length, messages });
}
