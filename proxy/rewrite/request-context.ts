import type { MessagesRequest } from '../ports.ts';
import { classify, findSessionId, type RequestClass } from '../wire/classify.ts';
import { type ConversationCache, type ConversationView, parseConversation } from '../wire/conversation.ts';
import type { Spliced } from './apply-plan.ts';
import type { EpochPlan } from './plan.ts';

/** A parsed request. */
export interface RequestContext {
  readonly request: MessagesRequest;
  readonly view: ConversationView;
  readonly sessionId: string;
  readonly kind: RequestClass;
}

/** Null when the body is not a request that may be rewritten. */
export function parseRequest(request: MessagesRequest, cache: ConversationCache): RequestContext | null {
  const view = parseConversation(request.body, cache);
  if (view === null) return null;
  const { kind } = classify(view, request.headers);
  return { request, view, sessionId: findSessionId(view, request.headers), kind };
}

/** The outcome of the pipeline for one request. */
export interface RewriteResult {
  readonly context: RequestContext;
  readonly plan: EpochPlan | null;
  /** Null when the received bytes go upstream. */
  readonly spliced: Spliced | null;
  /** For the receipt. */
  readonly decision: string;
  /** The request is the first one with a new cut. */
  readonly cut: boolean;
}
