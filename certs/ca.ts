import { createHash, generateKeyPair, randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import forge from 'node-forge';
import { DAY_MS } from '../common/async.ts';

/** 397 days with the day before now, which allows for a slow clock; Apple allows no more for public leaves. */
const LIFE_DAYS = 396;

/** A signing root. Its key exists in memory only. */
export type Root = Awaited<ReturnType<typeof createRoot>>;

/** A root that is valid for `host` and its subdomains only. */
export async function createRoot(host: string, nowMs: number) {
  // RSA-2048 from OpenSSL: forge takes seconds for it.
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const validity = { notBefore: new Date(nowMs - DAY_MS), notAfter: new Date(nowMs + LIFE_DAYS * DAY_MS - 1_000) };
  const cert = forge.pki.createCertificate();
  const subject = [{ name: 'commonName', value: `comet-cc ${randomBytes(8).toString('hex')}` }];
  cert.publicKey = forge.pki.publicKeyFromPem(publicKey);
  cert.serialNumber = serialNumber();
  cert.validity = { ...validity };
  cert.setSubject(subject);
  cert.setIssuer(subject);
  cert.setExtensions([
    { name: 'basicConstraints', critical: true, cA: true, pathLenConstraint: 0 },
    { name: 'keyUsage', critical: true, keyCertSign: true, cRLSign: true },
    { name: 'subjectKeyIdentifier' },
    { id: '2.5.29.30', critical: true, value: nameConstraints(host) },
  ]);
  return { certPem: signCertificate(cert, privateKey), cert, keyPem: privateKey, validity };
}

/** Its types leave this function out. */
const { getTBSCertificate } = forge.pki as typeof forge.pki & {
  getTBSCertificate(cert: forge.pki.Certificate): forge.asn1.Asn1;
};

/**
 * Signs by OpenSSL, in a hundredth of forge's time.
 * @param spki  DER of a public key that stands in place of the certificate's own, for kinds that forge does not know
 * @returns PEM
 */
function signCertificate(cert: forge.pki.Certificate, keyPem: string, spki?: Buffer): string {
  const { asn1, pki } = forge;
  cert.signatureOid = pki.oids['sha256WithRSAEncryption'] as string;
  cert.siginfo.algorithmOid = cert.signatureOid;
  cert.tbsCertificate = getTBSCertificate(cert);
  if (spki !== undefined) {
    const fields = cert.tbsCertificate.value as forge.asn1.Asn1[];
    fields[SUBJECT_PUBLIC_KEY] = asn1.fromDer(spki.toString('binary'));
  }
  const bytes = Buffer.from(asn1.toDer(cert.tbsCertificate).getBytes(), 'binary');
  cert.signature = sign('sha256', bytes, keyPem).toString('binary');
  return pki.certificateToPem(cert);
}

/** 128 bits, hex. The first bit is 0 and the second 1, so that the number is positive and of full length. */
export function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(0) & 0x7f) | 0x40, 0);
  return bytes.toString('hex');
}

/**
 * DER of the extension's value, which forge does not support: permitted DNS name `host`, excluded every IP address,
 * because a kind of name that is not mentioned is not constrained.
 * Source: RFC 5280, 4.2.1.10.
 */
function nameConstraints(host: string): string {
  const { asn1 } = forge;
  const node = (kind: forge.asn1.Class, type: number, value: string | forge.asn1.Asn1[]): forge.asn1.Asn1 =>
    asn1.create(kind, type, typeof value !== 'string', value);
  const subtree = (type: number, name: string): forge.asn1.Asn1 =>
    node(asn1.Class.UNIVERSAL, asn1.Type.SEQUENCE, [node(asn1.Class.CONTEXT_SPECIFIC, type, name)]);
  const dnsName = 2;
  const ipAddress = 7;
  const permitted = node(asn1.Class.CONTEXT_SPECIFIC, 0, [subtree(dnsName, host)]);
  const addresses = [subtree(ipAddress, '\0'.repeat(8)), subtree(ipAddress, '\0'.repeat(32))];
  const excluded = node(asn1.Class.CONTEXT_SPECIFIC, 1, addresses);
  return asn1.toDer(node(asn1.Class.UNIVERSAL, asn1.Type.SEQUENCE, [permitted, excluded])).getBytes();
}

export type Issued = Awaited<ReturnType<typeof issue>>;

/** A new root and its only leaf. The root's key never leaves this function. */
export async function issue(host: string, nowMs: number) {
  const root = await createRoot(host, nowMs);
  return { rootPem: root.certPem, leaf: await signLeaf(root, host, [{ kind: 'dns', value: host }]) };
}

/** A server certificate that expires with its root. Its key is P-256: a handshake signs faster than with RSA. */
export async function signLeaf(
  root: Root,
  commonName: string,
  altNames: readonly { readonly kind: 'dns' | 'ip'; readonly value: string }[],
) {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const names = altNames.map(({ kind, value }) => (kind === 'dns' ? { type: 2, value } : { type: 7, ip: value }));
  const cert = forge.pki.createCertificate();
  cert.publicKey = root.cert.publicKey;
  cert.serialNumber = serialNumber();
  cert.validity = { ...root.validity };
  cert.setSubject([{ name: 'commonName', value: commonName }]);
  cert.setIssuer(root.cert.subject.attributes);
  cert.setExtensions([
    { name: 'basicConstraints', critical: true, cA: false },
    { name: 'keyUsage', critical: true, digitalSignature: true },
    { name: 'extKeyUsage', serverAuth: true },
    { id: '2.5.29.14', value: keyIdentifier(publicKey) },
    { name: 'authorityKeyIdentifier', keyIdentifier: root.cert.generateSubjectKeyIdentifier().getBytes() },
    ...(names.length === 0 ? [] : [{ name: 'subjectAltName', altNames: names }]),
  ]);
  return { certPem: signCertificate(cert, root.keyPem, publicKey), keyPem: privateKey };
}

/** Place of the key in a version 3 TBSCertificate. Source: RFC 5280, 4.1. */
const SUBJECT_PUBLIC_KEY = 6;
/** Of an uncompressed P-256 point, at the end of its SubjectPublicKeyInfo. */
const POINT_BYTES = 65;

/** DER of the subject key identifier: the SHA-1 of the key's bits. Source: RFC 5280, 4.2.1.2. */
function keyIdentifier(spki: Buffer): string {
  const { asn1 } = forge;
  const digest = createHash('sha1').update(spki.subarray(-POINT_BYTES)).digest('binary');
  return asn1.toDer(asn1.create(asn1.Class.UNIVERSAL, asn1.Type.OCTETSTRING, false, digest)).getBytes();
}
