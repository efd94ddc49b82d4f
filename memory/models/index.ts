export { createKeyedRequest } from './endpoint-request.ts';
export { fullModelName } from './openai.ts';
