import type { MessagesRequest } from '../ports.ts';
import { classify, findSessionId, type RequestClass } from '../wire/classify.ts';
import { type ConversationCache, type ConversationView, parseConversation } from '../wire/conversation.ts';
import { parseBetas } from '../wire/request-shape.ts';
import type { Spliced } from '../wire/splice.ts';
import type { EpochPlan } from './plan.ts';

/** A request that was understood. */
export interface RequestContext {
  readonly request: MessagesRequest;
  readonly view: ConversationView;
  readonly sessionId: string;
  readonly kind: RequestClass;
  readonly betas: readonly string[];
}

/** Null where the body is nothing that may be rewritten. */
export function parseRequest(request: MessagesRequest, cache: ConversationCache): RequestContext | null {
  const view = parseConversation(request.body, cache);
  if (view === null) return null;
  const { kind } = classify(view, request.headers);
  const betas = parseBetas(request.headers['anthropic-beta']);
  return { request, view, sessionId: findSessionId(view, request.headers), kind, betas };
}

/** What a request was made into, and why. */
export interface RewriteResult {
  readonly passage: RequestContext;
  readonly plan: EpochPlan | null;
  /** Null where there is no plan, or it is not for this request. */
  readonly spliced: Spliced | null;
  readonly decision: string;
  /** It goes out with a new cut. */
  readonly cut: boolean;
}
