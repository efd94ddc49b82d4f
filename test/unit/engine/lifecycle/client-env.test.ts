import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clientEnvironment,
  getShell,
  isOurProxy,
  noProxyCovers,
  shellLines,
  withoutOurs,
} from '../../../../engine/lifecycle/client-env.ts';
import { CODE_POINT } from '../../../helpers/code-point.ts';

const ACCESS = { port: 8443, token: 'T0ken_-', bundle: '/home/u/.comet-cc/certs/bundle.pem' };
const OURS = 'http://comet-cc:T0ken_-@127.0.0.1:8443';

describe('clientEnvironment', () => {
  it('sets the lower-case name only where the user has it', () => {
    expect(clientEnvironment(ACCESS, {})).toEqual({
      HTTPS_PROXY: OURS,
      NODE_EXTRA_CA_CERTS: ACCESS.bundle,
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
      CLAUDE_CODE_TETHER_LIVE: '0',
    });
    expect(clientEnvironment(ACCESS, { https_proxy: 'http://p:1' })).toMatchObject({ https_proxy: OURS });
  });
});

describe('withoutOurs', () => {
  it('leaves the environment as the user had it', () => {
    const user = { PATH: '/bin', HTTP_PROXY: 'http://proxy.example:3128', NODE_EXTRA_CA_CERTS: '/own.pem' };
    const ours = { ...user, ...clientEnvironment(ACCESS, {}), https_proxy: OURS };
    expect(withoutOurs(ours, ACCESS.bundle, '/own.pem')).toEqual({
      ...user,
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
      CLAUDE_CODE_TETHER_LIVE: '0',
    });
    expect(withoutOurs({ NODE_EXTRA_CA_CERTS: ACCESS.bundle }, ACCESS.bundle, null)).toEqual({});
    expect(withoutOurs(user, ACCESS.bundle, null)).toEqual(user);
  });

  it('knows its own proxy by name and address', () => {
    expect(isOurProxy('http://comet-cc:x@127.0.0.1:9999')).toBe(true);
    expect(isOurProxy('http://comet-cc:x@proxy.example:9999')).toBe(false);
    expect(isOurProxy('http://127.0.0.1:8443')).toBe(false);
    expect(isOurProxy('no url')).toBe(false);
    expect(isOurProxy(undefined)).toBe(false);
  });
});

describe('noProxyCovers', () => {
  it.each([
    '*',
    'api.anthropic.com',
    '.anthropic.com',
    '*.anthropic.com',
    'x.example, anthropic.com',
    'api.anthropic.com:443',
  ])('%s covers the target', (text) => {
    expect(noProxyCovers({ NO_PROXY: text }, 'api.anthropic.com')).toBe(true);
  });

  it.each(['', 'localhost,127.0.0.1', 'notanthropic.com', 'other.anthropic.com'])('"%s" does not', (text) => {
    expect(noProxyCovers({ NO_PROXY: text }, 'api.anthropic.com')).toBe(false);
  });
});

describe('shellLines', () => {
  it('sets any value at all in a POSIX shell', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: CODE_POINT }).map((text) => text.replace(/[\0\ud800-\udfff]/g, '')),
        (value) => {
          const script = `${shellLines({ VALUE: value }, 'bash')}\nprintf %s "$VALUE"`;
          expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(value);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('quotes for fish and PowerShell', () => {
    expect(shellLines({ A: "it's \\ $HOME" }, 'fish')).toBe("set -gx A 'it\\'s \\\\ $HOME'");
    expect(shellLines({ A: "it's $HOME" }, 'powershell')).toBe("$env:A = 'it''s $HOME'");
  });

  it('is one JSON document for programs', () => {
    expect(JSON.parse(shellLines({ A: '"', B: '' }, 'json'))).toEqual({ A: '"', B: '' });
  });
});

describe('shellOf', () => {
  it.each([
    [{ SHELL: '/bin/zsh' }, 'zsh'],
    [{ SHELL: '/opt/homebrew/bin/fish' }, 'fish'],
    [{ SHELL: '/bin/dash' }, 'bash'],
    [{}, 'bash'],
    [{ PSModulePath: 'C:\\' }, 'powershell'],
  ])('%j is %s', (env, shell) => {
    expect(getShell(env)).toBe(shell);
  });
});
