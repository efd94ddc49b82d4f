import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAuthority } from '../../../../proxy/guard/tunnel.ts';

describe('parseAuthority', () => {
  it.each([
    ['api.anthropic.com:443', 'api.anthropic.com', 443],
    ['API.Anthropic.COM:443', 'api.anthropic.com', 443],
    ['localhost:1', 'localhost', 1],
    ['a_b.example:65535', 'a_b.example', 65_535],
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    ['[::1]:443', '::1', 443],
    ['[2001:DB8::7]:443', '2001:db8::7', 443],
    ['constructor:443', 'constructor', 443],
    ['__proto__:443', '__proto__', 443],
  ])('reads %s', (text, host, port) => {
    expect(parseAuthority(text)).toEqual({ host, port });
  });

  it.each([
    '',
    ':443',
    'host',
    'host:',
    'host:0',
    'host:00443',
    'host:65536',
    'host:99999',
    'host:4 43',
    'host:+1',
    '../../x:443',
    'a/b:443',
    'a\r\nb:443',
    'host:443\r\n',
    'user@host:443',
    'http://host:443',
    'a..b:443',
    '.host:443',
    'host.:443',
    '-a:443',
    'a-:443',
    '::1:443',
    '[::1:443',
    '::1]:443',
    '[]:443',
    '[fe80::1%eth0]:443',
    '[127.0.0.1]:443',
    '127.1:443',
    '0x7f.1:443',
    '2130706433:443',
    '256.0.0.1:443',
    `${'a'.repeat(64)}:443`,
    `${'a.'.repeat(130)}a:443`,
    'hóst:443',
    'host:443:443',
    '*:443',
  ])('refuses %j', (text) => {
    expect(parseAuthority(text)).toBeNull();
  });

  it('returns only plain hosts and valid ports for any input', () => {
    const pieces = fc.constantFrom(
      'a',
      'host',
      '.',
      ':',
      '[',
      ']',
      '/',
      '%',
      '@',
      '\r\n',
      '\0',
      ' ',
      '443',
      '0',
      '-',
      '::1',
    );
    const texts = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const parsed = parseAuthority(text);
        if (parsed === null) return;
        expect(parsed.host).toMatch(/^[a-z0-9_.:-]+$/);
        expect(parsed.host).not.toMatch(/^[./-]|\.\./);
        expect(parsed.port).toBeGreaterThan(0);
        expect(parsed.port).toBeLessThan(65_536);
      }),
      { numRuns: 5_000 },
    );
  });
});
