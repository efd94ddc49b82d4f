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
    throw new CometError('ca_unreadable', `${rootFile} is no certificate; run comet-cc install-ca`, { cause: error });
  }
}

/** Every certificate of a PEM text that OpenSSL can read; not every block of a system's bundle must be one. */
export function certificatesIn(text: string): X509Certificate[] {
  return text
    .split(END)
    .slice(0, -1)
    .flatMap((block) => parsed(`${block.slice(block.lastIndexOf('-----BEGIN'))}${END}\n`));
}

/** SHA-256 of every certificate of a PEM text. */
export function fingerprintsIn(text: string): string[] {
  return certificatesIn(text).map(({ fingerprint256 }) => fingerprint256);
}

/** The certificates of a text with one in base64 (DER) on each line; other lines are passed over. */
export function certificatesInBase64Lines(text: string): X509Certificate[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .flatMap((line) => parsed(Buffer.from(line, 'base64')));
}

function parsed(encoded: string | Buffer): X509Certificate[] {
  try {
    return [new X509Certificate(encoded)];
  } catch {
    return []; // Somebody else's entry: it is none of ours, which all parse.
  }
}
