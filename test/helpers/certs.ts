import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
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

const DAY_MS = 86_400_000;

/** A throwaway CA and a leaf it signed, for a day before and after `atMs`, in a fresh 0700 directory that the caller removes. */
export function makeTestCerts(hosts: readonly string[], atMs = Date.now()): TestCerts {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'cc-test-'));
  const root = newCert(`comet-cc test ${randomBytes(6).toString('hex')}`, atMs);
  root.cert.setIssuer(root.cert.subject.attributes);
  root.cert.setExtensions([
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, critical: true },
  ]);
  const leaf = newCert(hosts[0] as string, atMs);
  leaf.cert.setIssuer(root.cert.subject.attributes);
  const altNames = hosts.map((host) => (/^[\d.]+$/.test(host) ? { type: 7, ip: host } : { type: 2, value: host }));
  leaf.cert.setExtensions([
    { name: 'extKeyUsage', serverAuth: true },
    { name: 'subjectAltName', altNames },
  ]);
  const [ca, cert] = [signed(root, root.privateKey), signed(leaf, root.privateKey)];
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const file = (name: string, text: string): string => {
    writeFileSync(path.join(dir, name), text, { mode: 0o600 });
    return path.join(dir, name);
  };
  return {
    dir,
    ca,
    caFile: file('ca.pem', ca),
    key,
    cert,
    keyFile: file('leaf.key', key),
    certFile: file('leaf.pem', cert),
  };
}

type NewCert = ReturnType<typeof newCert>;

function newCert(commonName: string, atMs: number) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = forge.pki.createCertificate();
  // A first byte below 0x80 that is not 0: DER takes neither a negative serial nor needless padding.
  cert.serialNumber = `01${randomBytes(15).toString('hex')}`;
  cert.validity.notBefore = new Date(atMs - DAY_MS);
  cert.validity.notAfter = new Date(atMs + DAY_MS);
  cert.setSubject([{ name: 'commonName', value: commonName }]);
  return { cert, publicKey, privateKey };
}

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const [ALGORITHM, PUBLIC_KEY] = [2, 6];

/** PEM. forge knows RSA only, whose keys and signatures take a hundred times as long. */
function signed({ cert, publicKey }: NewCert, issuer: KeyObject): string {
  const { asn1 } = forge;
  const pki = forge.pki as typeof forge.pki & { getTBSCertificate(of: forge.pki.Certificate): forge.asn1.Asn1 };
  const { SEQUENCE, OID, BITSTRING } = asn1.Type;
  const node = (type: forge.asn1.Type, value: string | forge.asn1.Asn1[]): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, type, typeof value !== 'string', value);
  const binary = (asn: forge.asn1.Asn1): Buffer => Buffer.from(asn1.toDer(asn).getBytes(), 'binary');
  const algorithm = node(SEQUENCE, [node(OID, asn1.oidToDer(ECDSA_WITH_SHA256).getBytes())]);
  // Both are replaced below.
  const number = new forge.jsbn.BigInteger('3');
  cert.publicKey = pki.setRsaPublicKey(number, number);
  cert.siginfo.algorithmOid = ECDSA_WITH_SHA256;
  const body = pki.getTBSCertificate(cert);
  const parts = body.value as forge.asn1.Asn1[];
  parts[ALGORITHM] = algorithm;
  parts[PUBLIC_KEY] = asn1.fromDer(publicKey.export({ type: 'spki', format: 'der' }).toString('binary'));
  const signature = sign('sha256', binary(body), issuer).toString('binary');
  const der = binary(node(SEQUENCE, [body, algorithm, node(BITSTRING, `\0${signature}`)]));
  return forge.pem.encode({ type: 'CERTIFICATE', body: der.toString('binary') });
}
