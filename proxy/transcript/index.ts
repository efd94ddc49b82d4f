export { findModelTraits } from '../wire/models.ts';
export {
  ASSUMED_MEMORY,
  DEFAULT_TTL,
  findHeadTokens,
  type SimulatedCost,
  type SimulatedRequest,
  simulateConversation,
  sumRequests,
} from './plan.ts';
export { createRequestReader, type PastConversation, type PastMessage, type PastRequest } from './request.ts';
