import { X509Certificate } from 'node:crypto';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent } from '../../common/files.ts';

const END = '-----END CERTIFICATE-----';

/** @throws CometError `ca_unreadable` when it is missing or no certificate */
export async function readRoot(rootFile: string): Promise<X509Certificate> {
  const pem = await readFileIfPresent(rootFile);
  if (pem === null) throw new CometError('ca_unreadable', `${rootFile} is missing; run comet-cc install-ca first`);
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new CometError('ca_unreadable', `${rootFile} is not a certificate; run comet-cc install-ca`, {
      cause: error,
    });
  }
}

/** The certificates of a PEM text; blocks that OpenSSL cannot read are skipped. */
export function readCertificates(text: string): X509Certificate[] {
  return text
    .split(END)
    .slice(0, -1)
    .flatMap((block) => parseCertificate(`${block.slice(block.lastIndexOf('-----BEGIN'))}${END}\n`));
}

/** SHA-256 of each certificate of a PEM text. */
export function readFingerprints(text: string): string[] {
  return readCertificates(text).map(({ fingerprint256 }) => fingerprint256);
}

/** The certificates of a text with one in base64 (DER) a line; other lines are skipped. */
export function readBase64Lines(text: string): X509Certificate[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .flatMap((line) => parseCertificate(Buffer.from(line, 'base64')));
}

function parseCertificate(encoded: string | Buffer): X509Certificate[] {
  try {
    return [new X509Certificate(encoded)];
  } catch {
    return []; // Not a certificate of comet-cc: those all parse.
  }
}
