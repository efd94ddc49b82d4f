import { describe, expect, it } from 'vitest';
import {
  endToEndHeaders,
  headerValues,
  selectResponseHeaders,
  stripCredentials,
} from '../../../../proxy/http/request.ts';

describe('headers for the next hop', () => {
  it('keep order, case and duplicates, and lose what is for one hop', () => {
    const raw = ['B', '1', 'Connection', 'close, X-Hop', 'x-hop', '2', 'b', '3', 'Keep-Alive', 't', 'TE', 'trailers'];
    expect(endToEndHeaders([...raw, 'Transfer-Encoding', 'chunked', 'Proxy-Authorization', 'z'])).toEqual([
      'B',
      '1',
      'b',
      '3',
    ]);
  });

  it('lose what the caller names, in any case', () => {
    expect(
      endToEndHeaders(['X-Comet-CC-Child', '1', 'Expect', '100-continue', 'A', 'b'], ['x-comet-cc-child', 'expect']),
    ).toEqual(['A', 'b']);
  });
});

describe('headers for memory', () => {
  it('name no credential', () => {
    const raw = [
      'Authorization',
      'Bearer x',
      'X-Api-Key',
      'k',
      'Cookie',
      'c',
      'Proxy-Authorization',
      'p',
      'User-Agent',
      'u',
    ];
    expect(stripCredentials(raw)).toEqual({ 'user-agent': 'u' });
  });

  it('join duplicates and take any name for a name', () => {
    const found = stripCredentials(['A', '1', 'a', '2', '__proto__', 'x', 'constructor', 'y']);
    expect(Object.entries(found)).toEqual([
      ['a', '1, 2'],
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
    expect(headerValues(['A', '1', 'a', '2', 'b', 'a'], 'a')).toEqual(['1', '2']);
  });

  it('of a response are its limits and its id', () => {
    const raw = ['Anthropic-RateLimit-Unified-Status', 'ok', 'Retry-After', '3', 'request-id', 'r', 'Set-Cookie', 'c'];
    expect(selectResponseHeaders(raw)).toEqual({
      'anthropic-ratelimit-unified-status': 'ok',
      'retry-after': '3',
      'request-id': 'r',
    });
  });
});
