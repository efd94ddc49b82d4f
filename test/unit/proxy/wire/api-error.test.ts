import { describe, expect, it } from 'vitest';
import { classifyApiError } from '../../../../proxy/wire/api-error.ts';

const body = (message: string): string =>
  JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } });

describe('a refusal of a rewritten request', () => {
  it.each([
    [
      'messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
      'thinking',
    ],
    ['messages.3: `tool_use` ids were found without `tool_result` blocks immediately after', 'structure'],
    ['A maximum of 4 blocks with cache_control may be provided. Found 5.', 'structure'],
    ['prompt is too long: 210000 tokens > 200000 maximum', null],
    ['Your credit balance is too low to access the API', null],
    ['max_tokens: 999999 > 64000', null],
  ])('%s', (message, fault) => {
    expect(classifyApiError(body(message))).toBe(fault);
  });
});
