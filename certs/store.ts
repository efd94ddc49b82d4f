import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { lstatSync, readFileSync, renameSync } from 'node:fs';
import { mkdir, readFile, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../common/errors.ts';
import {
  createExclusive,
  type FileProblem,
  inspectDir,
  inspectPrivateFile,
  readFileIfPresent,
  syncDir,
  writeFileAtomic,
} from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';
import { parseJson, toRecord } from '../common/text.ts';
import type { Issued } from './ca.ts';

const GENERATION = ['root.pem', 'leaf.pem', 'leaf.key'] as const;

export type LeafProblem = FileProblem | 'expired' | 'not_yet_valid' | 'damaged' | 'key_mismatch';

export const refuse = (reason: LeafProblem, file: string) => ({ kind: 'refused', reason, file }) as const;

/** Reads the leaf in `dir`, and refuses one that other users could have read or written. */
export function loadLeaf(dir: string, nowMs: number) {
  const [certFile, keyFile] = [path.join(dir, 'leaf.pem'), path.join(dir, 'leaf.key')];
  const openDir = inspectDir(dir);
  if (openDir !== null) return refuse(openDir, dir);
  for (const file of [certFile, keyFile]) {
    const doubt = inspectPrivateFile(file);
    if (doubt !== null) return refuse(doubt, file);
  }
  try {
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
    // Cached because each connection asks for the same pair, and parsing takes 2 ms.
    if (lastPair?.cert !== cert || lastPair.key !== key) lastPair = readPair(cert, key);
    const { notBeforeMs, notAfterMs, isPair } = lastPair;
    if (nowMs >= notAfterMs) return refuse('expired', certFile);
    if (nowMs < notBeforeMs) return refuse('not_yet_valid', certFile);
    if (!isPair) return refuse('key_mismatch', certFile);
    return { kind: 'usable', leaf: { keyFile, certFile, key, cert, notAfterMs } } as const;
  } catch {
    return refuse('damaged', certFile);
  }
}

const readPair = (cert: string, key: string) => {
  const parsed = new X509Certificate(cert);
  const isPair = parsed.checkPrivateKey(createPrivateKey(key));
  return { cert, key, isPair, notBeforeMs: Date.parse(parsed.validFrom), notAfterMs: Date.parse(parsed.validTo) };
};
let lastPair: ReturnType<typeof readPair> | null = null;

/** Identifies the certificates in `certsDir`; null when there are none. */
export function getGeneration(certsDir: string): number | null {
  return lstatSync(certsDir, { throwIfNoEntry: false })?.ino ?? null;
}

/**
 * Replaces the certificates in `certsDir` as a whole. A crash leaves the old ones, the new ones or none. When another
 * process replaced them first, its certificates stay.
 * @param expected  what `getGeneration` returned when the old ones were checked
 * @param write     writes every file into the directory it is given
 */
export async function publish(certsDir: string, expected: number | null, write: (dir: string) => Promise<void>) {
  const fresh = `${certsDir}.${randomBytes(6).toString('hex')}.tmp`;
  const former = fresh.replace(/tmp$/, 'old');
  await mkdir(fresh, { mode: 0o700 });
  try {
    await write(fresh);
    await syncDir(fresh);
    // Synchronous, so that the directory is missing no longer than two renames take.
    if (getGeneration(certsDir) !== expected) return;
    if (expected !== null) renameSync(certsDir, former);
    renameSync(fresh, certsDir);
    await syncDir(path.dirname(certsDir));
  } catch (error) {
    // Only another process renames these directories.
    const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
    if (syscall !== 'rename' || !['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(code)) throw error;
  } finally {
    await rm(fresh, { recursive: true, force: true });
    await rm(former, { recursive: true, force: true });
  }
}

export async function writeGeneration(dir: string, issued: Issued): Promise<void> {
  const texts = { 'root.pem': issued.rootPem, 'leaf.pem': issued.leaf.certPem, 'leaf.key': issued.leaf.keyPem };
  for (const name of GENERATION) {
    if (!(await createExclusive(path.join(dir, name), texts[name])))
      throw new CometError('ca_exists', `${path.join(dir, name)} was created by another process; try again`);
  }
}

/** Copies certificates; every file is created private. */
export async function copyGeneration(from: string, to: string): Promise<void> {
  for (const name of GENERATION) await createExclusive(path.join(to, name), await readFile(path.join(from, name)));
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

export const bundleFile = (certsDir: string): string => path.join(certsDir, 'bundle.pem');

/**
 * Writes the file for NODE_EXTRA_CA_CERTS: the roots of comet-cc, then the user's own certificates. `problems`: what
 * could not be merged, as messages for the user.
 * @throws CometError `ca_unreadable` when the root is missing
 */
export async function writeBundle(certsDir: string, userFile: string | null) {
  const root = await readFileIfPresent(path.join(certsDir, 'root.pem'));
  if (root === null) throw new CometError('ca_unreadable', `${certsDir} has no root; run comet-cc install-ca`);
  const next = await readFileIfPresent(path.join(certsDir, 'next', 'root.pem'));
  const user = userFile === null ? { certificates: [], problems: [] } : await readUserFile(userFile);
  const sections = [
    labelCertificates('comet-cc root', [root]),
    next === null ? '' : labelCertificates('comet-cc root, after the next renewal', [next]),
    user.certificates.length === 0 ? '' : labelCertificates(`from ${userFile}`, user.certificates),
  ];
  await writeFileAtomic(recordFile(certsDir), `${JSON.stringify({ userFile })}\n`);
  await writeFileAtomic(bundleFile(certsDir), sections.join(''));
  return { file: bundleFile(certsDir), userFile, problems: user.problems };
}

/** The file to merge: NODE_EXTRA_CA_CERTS, or the one merged last where that is null or the bundle itself. */
export async function resolveUserFile(paths: HomePaths, userExtraCaFile: string | null): Promise<string | null> {
  if (userExtraCaFile === null) return userCaFile(paths);
  const files = [path.resolve(userExtraCaFile), path.resolve(bundleFile(paths.certsDir))];
  const [given, own] = await Promise.all(files.map((file) => realpath(file).catch(() => file)));
  return given === own ? userCaFile(paths) : path.resolve(userExtraCaFile);
}

/** The user's own NODE_EXTRA_CA_CERTS that the bundle replaces. */
export async function userCaFile(paths: HomePaths): Promise<string | null> {
  const text = await readFileIfPresent(recordFile(paths.certsDir));
  if (text === null) return null;
  const { userFile } = toRecord(parseJson(text));
  if (userFile === null || typeof userFile === 'string') return userFile;
  throw new CometError('ca_unreadable', `${recordFile(paths.certsDir)} is damaged; remove it`);
}

const recordFile = (certsDir: string): string => path.join(certsDir, 'bundle.json');

// A certificate that does not parse would make the client ignore all that follow it.
async function readUserFile(file: string): Promise<{ certificates: string[]; problems: string[] }> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => error);
  if (typeof text !== 'string')
    return { certificates: [], problems: [`NODE_EXTRA_CA_CERTS names ${file}, which cannot be read (${text.code})`] };
  const blocks = certificateBlocks(text);
  const certificates = blocks.filter((block) => parseCertificate(block).length > 0);
  const invalid = blocks.length - certificates.length;
  if (blocks.length === 0) return { certificates, problems: [`${file} has no PEM certificate`] };
  const problems = invalid === 0 ? [] : [`${file}: ${invalid} certificates do not parse and are left out`];
  return { certificates, problems };
}

function labelCertificates(label: string, certificates: readonly string[]): string {
  return `# ${label.replaceAll(/[^\x20-\x7e]/g, '?')}\n${certificates.map((pem) => `${pem.trim()}\n`).join('')}`;
}

/** @throws CometError `ca_unreadable` when it is missing or no certificate */
export async function readRoot(rootFile: string): Promise<X509Certificate> {
  const pem = await readFileIfPresent(rootFile);
  if (pem === null) throw new CometError('ca_unreadable', `${rootFile} is missing; run comet-cc install-ca first`);
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new CometError('ca_unreadable', `${rootFile} is not a certificate; run comet-cc install-ca`, { cause });
  }
}

/** The certificates of a PEM text; blocks that OpenSSL cannot read are skipped. */
export const readCertificates = (text: string): X509Certificate[] => certificateBlocks(text).flatMap(parseCertificate);

export function certificateBlocks(text: string): string[] {
  const parts = text.split(END).slice(0, -1);
  return parts.flatMap((part) => (part.includes(BEGIN) ? `${part.slice(part.lastIndexOf(BEGIN))}${END}\n` : []));
}

/** SHA-256 of each certificate of a PEM text. */
export function readFingerprints(text: string): string[] {
  return readCertificates(text).map(({ fingerprint256 }) => fingerprint256);
}

function parseCertificate(encoded: string | Buffer): X509Certificate[] {
  try {
    return [new X509Certificate(encoded)];
  } catch {
    return []; // Not a certificate of comet-cc: those all parse.
  }
}
