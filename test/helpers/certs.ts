import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import forge from 'node-forge';

export interface TestCerts {
  readonly dir: string;
  readonly ca: string;
  readonly caFile: string;
  readonly key: string;
  readonly cert: string;
  readonly keyFile: string;
  readonly certFile: string;
}

/** A throwaway CA and a leaf it signed, in a fresh 0700 directory that the caller removes. */
export function makeTestCerts(hosts: readonly string[]): TestCerts {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'cc-test-'));
  const root = newCert(`comet-cc test ${randomBytes(6).toString('hex')}`);
  root.cert.setIssuer(root.cert.subject.attributes);
  root.cert.setExtensions([
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, critical: true },
  ]);
  root.cert.sign(root.privateKey, forge.md.sha256.create());
  const leaf = newCert(hosts[0] as string);
  leaf.cert.setIssuer(root.cert.subject.attributes);
  const altNames = hosts.map((host) => (/^[\d.]+$/.test(host) ? { type: 7, ip: host } : { type: 2, value: host }));
  leaf.cert.setExtensions([
    { name: 'extKeyUsage', serverAuth: true },
    { name: 'subjectAltName', altNames },
  ]);
  leaf.cert.sign(root.privateKey, forge.md.sha256.create());
  const ca = forge.pki.certificateToPem(root.cert);
  const cert = forge.pki.certificateToPem(leaf.cert);
  const file = (name: string, text: string): string => {
    writeFileSync(path.join(dir, name), text, { mode: 0o600 });
    return path.join(dir, name);
  };
  return {
    dir,
    ca,
    caFile: file('ca.pem', ca),
    key: leaf.key,
    cert,
    keyFile: file('leaf.key', leaf.key),
    certFile: file('leaf.pem', cert),
  };
}

function newCert(commonName: string) {
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  const cert = forge.pki.createCertificate();
  cert.publicKey = forge.pki.publicKeyFromPem(pair.publicKey);
  // A first byte below 0x80 that is not 0: DER takes neither a negative serial nor needless padding.
  cert.serialNumber = `01${randomBytes(15).toString('hex')}`;
  cert.validity.notBefore = new Date(Date.now() - 86_400_000);
  cert.validity.notAfter = new Date(Date.now() + 86_400_000);
  cert.setSubject([{ name: 'commonName', value: commonName }]);
  return { cert, key: pair.privateKey, privateKey: forge.pki.privateKeyFromPem(pair.privateKey) };
}
