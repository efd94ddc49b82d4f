import { createCipheriv, createDecipheriv, randomBytes, type ScryptOptions, scrypt } from 'node:crypto';
import { promisify } from 'node:util';

/** About 100 ms and 32 MB for a guess. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 } as const;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MARK = 'sealed:';
const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

export const newSalt = (): string => randomBytes(16).toString('hex');

/** AES-256 key of a machine's rows. @param salt  hex */
export function sealingKey(passphrase: string, salt: string): Promise<Buffer> {
  return derive(passphrase.normalize('NFC'), Buffer.from(salt, 'hex'), KEY_BYTES, COST);
}

/** AES-256-GCM under a random nonce: nonce, ciphertext and tag, base64 behind a mark. */
export function seal(text: string, key: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return MARK + sealed.toString('base64');
}

export const isSealed = (payload: string): boolean => payload.startsWith(MARK);

/** Null where the key is another one, or the bytes were changed. */
export function unseal(payload: string, key: Buffer): string | null {
  const bytes = Buffer.from(payload.slice(MARK.length), 'base64');
  if (!isSealed(payload) || bytes.length < NONCE_BYTES + TAG_BYTES) return null;
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(end));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}
