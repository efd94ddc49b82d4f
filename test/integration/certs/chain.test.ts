import { execFileSync } from 'node:child_process';
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import { beforeAll, describe, expect, it } from 'vitest';
import { createRoot, issue, type Root, signLeaf } from '../../../certs/ca.ts';

const HOST = 'api.anthropic.com';
const DAY_MS = 86_400_000;

/** What a client that trusts only `rootPem` says to a server with `leaf`: 'accepted' or the error. */
async function handshake(
  rootPem: string,
  leaf: Awaited<ReturnType<typeof signLeaf>>,
  servername: string,
): Promise<string> {
  const server = tls.createServer({ key: leaf.keyPem, cert: leaf.certPem });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await new Promise((resolve) => {
      const isIp = servername === '127.0.0.1';
      const client = tls.connect({ port, host: '127.0.0.1', ca: rootPem, ...(isIp ? {} : { servername }) });
      client.once('secureConnect', () => {
        client.destroy();
        resolve('accepted');
      });
      client.once('error', (error: NodeJS.ErrnoException) => resolve(error.message));
    });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

function openssl(...args: string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function hasOpenssl(): boolean {
  try {
    return openssl('version') !== '';
  } catch {
    return false;
  }
}

let root: Root;
beforeAll(async () => {
  root = await createRoot(HOST, Date.now());
});

it('a leaf has a P-256 key and the identifiers of RFC 5280', async () => {
  const { certPem, keyPem } = await signLeaf(root, HOST, [{ kind: 'dns', value: HOST }]);
  const [leaf, issuer] = [new X509Certificate(certPem), new X509Certificate(root.certPem)];
  expect(leaf.publicKey.asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' });
  expect(leaf.checkPrivateKey(createPrivateKey(keyPem))).toBe(true);
  expect(leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey)).toBe(true);
  const point = leaf.publicKey.export({ type: 'spki', format: 'der' }).subarray(-65);
  expect(leaf.raw.includes(createHash('sha1').update(point).digest())).toBe(true);
});

describe('a TLS client that trusts the root', () => {
  it('accepts the leaf of the target host', async () => {
    expect(await handshake(root.certPem, await signLeaf(root, HOST, [{ kind: 'dns', value: HOST }]), HOST)).toBe(
      'accepted',
    );
  });

  it.each([
    ['another host', 'evil.example', [{ kind: 'dns', value: 'evil.example' }], 'evil.example'],
    [
      'a sibling of the host',
      'x.anthropic.com',
      [{ kind: 'dns', value: 'claude.anthropic.com' }],
      'claude.anthropic.com',
    ],
    ['a name without a SAN', 'evil.example', [], 'evil.example'],
    ['a wildcard above the host', HOST, [{ kind: 'dns', value: '*.anthropic.com' }], HOST],
    ['an IP address', HOST, [{ kind: 'ip', value: '127.0.0.1' }], '127.0.0.1'],
    [
      'the host beside another one',
      HOST,
      [
        { kind: 'dns', value: HOST },
        { kind: 'dns', value: 'evil.example' },
      ],
      'evil.example',
    ],
  ] as const)('refuses a leaf for %s, though the root signed it', async (_, commonName, altNames, servername) => {
    const leaf = await signLeaf(root, commonName, altNames);
    expect(await handshake(root.certPem, leaf, servername)).toMatch(/(permitted|excluded) subtree violation/);
  });

  it('refuses the leaf of another root with the same profile', async () => {
    const other = await issue(HOST, Date.now());
    expect(await handshake(root.certPem, other.leaf, HOST)).not.toBe('accepted');
  });
});

describe('the profile', () => {
  it('has the lifetimes, serial and usages that were promised', async () => {
    const nowMs = Date.now();
    const issued = await issue(HOST, nowMs);
    const [ca, leaf] = [new X509Certificate(issued.rootPem), new X509Certificate(issued.leaf.certPem)];
    const lifeMs = Date.parse(leaf.validTo) - Date.parse(leaf.validFrom);
    expect(lifeMs).toBeLessThanOrEqual(397 * DAY_MS);
    expect(Math.abs(Date.parse(leaf.validFrom) - (nowMs - DAY_MS))).toBeLessThan(2_000);
    expect(ca.validTo).toBe(leaf.validTo);
    expect(ca.ca).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.subjectAltName).toBe(`DNS:${HOST}`);
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(leaf.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
    expect(leaf.checkIssued(ca)).toBe(true);
    expect(ca.subject).toMatch(/^CN=comet-cc [0-9a-f]{16}$/);
  });

  it('never repeats a name or a serial', async () => {
    const [a, b] = await Promise.all([issue(HOST, Date.now()), issue(HOST, Date.now())]);
    expect(new X509Certificate(a.rootPem).subject).not.toBe(new X509Certificate(b.rootPem).subject);
    expect(new X509Certificate(a.leaf.certPem).serialNumber).not.toBe(new X509Certificate(b.leaf.certPem).serialNumber);
  });

  it.runIf(hasOpenssl())('is what openssl reads and verifies', async () => {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'comet-chain-'));
    try {
      const issued = await issue(HOST, Date.now());
      const [rootFile, leafFile] = [path.join(dir, 'root.pem'), path.join(dir, 'leaf.pem')];
      writeFileSync(rootFile, issued.rootPem);
      writeFileSync(leafFile, issued.leaf.certPem);
      expect(openssl('verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', rootFile, leafFile)).toMatch(/OK/);
      const text = openssl('x509', '-in', rootFile, '-noout', '-text').replaceAll(/\s+/g, ' ');
      expect(text).toContain(
        'Name Constraints: critical Permitted: DNS:api.anthropic.com Excluded: IP:0.0.0.0/0.0.0.0 IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0',
      );
      expect(text).toContain('Basic Constraints: critical CA:TRUE, pathlen:0');
      expect(text).toContain('Key Usage: critical Certificate Sign, CRL Sign');
      const leafText = openssl('x509', '-in', leafFile, '-noout', '-text').replaceAll(/\s+/g, ' ');
      const identifier = /Subject Key Identifier: ([0-9A-F:]+)/.exec(text)?.[1];
      expect(leafText).toMatch(new RegExp(`Authority Key Identifier: (keyid:)?${identifier}`));
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
