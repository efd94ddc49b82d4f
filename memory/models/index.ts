export { createEndpointKey, postJson } from './endpoint-request.ts';
export { fullModelName } from './openai.ts';
