import { describe, expect, it } from 'vitest';
import { bypassesProxy, createRoute, formatProxy, parseUpstreamProxy } from '../../../../proxy/guard/upstream-proxy.ts';

describe('parseNextHop', () => {
  it.each([
    ['http://proxy.example:3128', 'http://proxy.example:3128', null],
    ['proxy.example:3128', 'http://proxy.example:3128', null],
    ['http://proxy.example', 'http://proxy.example:80', null],
    ['https://proxy.example', 'https://proxy.example:443', null],
    ['http://[::1]:8080/', 'http://[::1]:8080', null],
    ['http://me:p%40ss@proxy.example:1', 'http://proxy.example:1', 'me:p@ss'],
    ['http://me:50%@proxy.example:1', 'http://proxy.example:1', 'me:50%'],
    ['http://me:a#b/c?$&d@e@proxy.example:1', 'http://proxy.example:1', 'me:a#b/c?$&d@e'],
  ])('%s leads to %s', (url, name, login) => {
    const hop = parseUpstreamProxy(url);
    expect(hop && formatProxy(hop)).toBe(name);
    expect(hop?.authorization).toBe(login && `Basic ${Buffer.from(login).toString('base64')}`);
  });

  it.each(['socks5://proxy.example:1080', 'http://', 'no url', ''])('%s is not used as a proxy', (url) => {
    expect(parseUpstreamProxy(url)).toBeNull();
  });
});

describe('bypasses', () => {
  const api = { host: 'api.anthropic.com', port: 443 };
  it.each(['*', 'api.anthropic.com', '.anthropic.com', '*.anthropic.com', 'x,ANTHROPIC.com', 'anthropic.com:443'])(
    '%s covers the api',
    (text) => expect(bypassesProxy(text, api)).toBe(true),
  );
  it.each(['', 'thropic.com', 'anthropic.com:80', '10.0.0.0/8', ' , '])('"%s" does not', (text) =>
    expect(bypassesProxy(text, api)).toBe(false),
  );
  it('knows addresses and ranges', () => {
    const at = (host: string) => ({ host, port: 22 });
    expect(bypassesProxy('10.0.0.0/8', at('10.1.2.3'))).toBe(true);
    expect(bypassesProxy('10.0.0.0/8', at('11.1.2.3'))).toBe(false);
    expect(bypassesProxy('10.0.0.0/99', at('10.1.2.3'))).toBe(false);
    expect(bypassesProxy('fd00::/8', at('fd12::1'))).toBe(true);
    expect(bypassesProxy('::1,127.0.0.1', at('::1'))).toBe(true);
    expect(bypassesProxy('[::1]:22', at('::1'))).toBe(true);
    expect(bypassesProxy('7.0.0.1', at('127.0.0.1'))).toBe(false);
  });
});

it('without a proxy every target is straight ahead', () => {
  expect(createRoute('', '')({ host: 'a.example', port: 1 })).toBeNull();
  expect(createRoute('socks5://p:1', '')({ host: 'a.example', port: 1 })).toBeNull();
  const route = createRoute('http://p:1', 'near.example');
  expect(route({ host: 'a.near.example', port: 1 })).toBeNull();
  expect(route({ host: 'a.example', port: 1 })).toMatchObject({ host: 'p', port: 1 });
});
