import forge from 'node-forge';
import { createKeys, createRoot, type Root, serialNumber } from './ca.ts';

export interface AltName {
  readonly kind: 'dns' | 'ip';
  readonly value: string;
}

export interface Leaf {
  readonly certPem: string;
  /** PKCS#8 PEM. */
  readonly keyPem: string;
}

export interface Issued {
  readonly rootPem: string;
  readonly leaf: Leaf;
}

/** A new root and its only leaf. The root's key never leaves this function. */
export async function issue(host: string, nowMs: number): Promise<Issued> {
  const root = await createRoot(host, nowMs);
  return { rootPem: root.certPem, leaf: await signLeaf(root, host, [{ kind: 'dns', value: host }]) };
}

/** A server certificate that expires with its root. */
export async function signLeaf(root: Root, commonName: string, altNames: readonly AltName[]): Promise<Leaf> {
  const { publicKey, privateKey } = await createKeys();
  const cert = forge.pki.createCertificate();
  cert.publicKey = forge.pki.publicKeyFromPem(publicKey);
  cert.serialNumber = serialNumber();
  cert.validity = { ...root.validity };
  cert.setSubject([{ name: 'commonName', value: commonName }]);
  cert.setIssuer(root.cert.subject.attributes);
  cert.setExtensions([
    { name: 'basicConstraints', critical: true, cA: false },
    { name: 'keyUsage', critical: true, digitalSignature: true, keyEncipherment: true },
    { name: 'extKeyUsage', serverAuth: true },
    { name: 'subjectKeyIdentifier' },
    { name: 'authorityKeyIdentifier', keyIdentifier: root.cert.generateSubjectKeyIdentifier().getBytes() },
    ...(altNames.length === 0 ? [] : [{ name: 'subjectAltName', altNames: altNames.map(forgeAltName) }]),
  ]);
  cert.sign(root.key, forge.md.sha256.create());
  return { certPem: forge.pki.certificateToPem(cert), keyPem: privateKey };
}

function forgeAltName({ kind, value }: AltName): Record<string, unknown> {
  return kind === 'dns' ? { type: 2, value } : { type: 7, ip: value };
}
