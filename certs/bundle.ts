import { X509Certificate } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { CometError } from '../common/errors.ts';
import { readFileIfPresent, writeFileAtomic } from '../common/files.ts';
import type { HomePaths } from '../common/paths.ts';

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

export interface Bundle {
  readonly file: string;
  /** The user's own NODE_EXTRA_CA_CERTS that was merged; null when there is none. */
  readonly userFile: string | null;
  /** What could not be merged, as messages for the user. */
  readonly problems: readonly string[];
}

export function bundleFile(certsDir: string): string {
  return path.join(certsDir, 'bundle.pem');
}

/**
 * Writes the file for NODE_EXTRA_CA_CERTS: the roots of comet-cc, then the user's own certificates.
 *
 * @param userExtraCaFile  NODE_EXTRA_CA_CERTS as found; null or the bundle itself means the file merged last time
 * @throws CometError `ca_unreadable` when the root is missing
 */
export async function writeBundle(paths: HomePaths, userExtraCaFile: string | null): Promise<Bundle> {
  return writeBundleInto(paths.certsDir, await resolveUserFile(paths, userExtraCaFile));
}

/** As `writeBundle`, for certificates in any directory. */
export async function writeBundleInto(certsDir: string, userFile: string | null): Promise<Bundle> {
  const root = await readFileIfPresent(path.join(certsDir, 'root.pem'));
  if (root === null) throw new CometError('ca_unreadable', `${certsDir} has no root; run comet-cc install-ca`);
  const next = await readFileIfPresent(path.join(certsDir, 'next', 'root.pem'));
  const user = userFile === null ? { certificates: [], problems: [] } : await readCertificates(userFile);
  const sections = [
    labelCertificates('comet-cc root', [root]),
    next === null ? '' : labelCertificates('comet-cc root, after the next renewal', [next]),
    user.certificates.length === 0 ? '' : labelCertificates(`from ${userFile}`, user.certificates),
  ];
  await writeFileAtomic(recordFile(certsDir), `${JSON.stringify({ userFile })}\n`);
  await writeFileAtomic(bundleFile(certsDir), sections.join(''));
  return { file: bundleFile(certsDir), userFile, problems: user.problems };
}

/** The file to merge: the one that the environment names, or the one merged last time. */
export async function resolveUserFile(paths: HomePaths, userExtraCaFile: string | null): Promise<string | null> {
  const isOwn = userExtraCaFile === null || (await isSameFile(userExtraCaFile, bundleFile(paths.certsDir)));
  return isOwn ? userCaFile(paths) : path.resolve(userExtraCaFile);
}

/** The user's own NODE_EXTRA_CA_CERTS that the bundle replaces. */
export async function userCaFile(paths: HomePaths): Promise<string | null> {
  const text = await readFileIfPresent(recordFile(paths.certsDir));
  if (text === null) return null;
  try {
    const { userFile } = Object(JSON.parse(text)) as { userFile?: unknown };
    if (userFile === null || typeof userFile === 'string') return userFile;
    throw new TypeError('userFile is neither a path nor null');
  } catch (error) {
    throw new CometError('ca_unreadable', `${recordFile(paths.certsDir)} is damaged; remove it`, { cause: error });
  }
}

function recordFile(certsDir: string): string {
  return path.join(certsDir, 'bundle.json');
}

// A certificate that does not parse would make the client ignore all that follow it.
async function readCertificates(
  file: string,
): Promise<{ readonly certificates: readonly string[]; readonly problems: readonly string[] }> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { certificates: [], problems: [`NODE_EXTRA_CA_CERTS names ${file}, which cannot be read (${code})`] };
  }
  const blocks = certificateBlocks(text);
  const certificates = blocks.filter(isCertificate);
  const invalid = blocks.length - certificates.length;
  if (blocks.length === 0) return { certificates, problems: [`${file} has no PEM certificate`] };
  return {
    certificates,
    problems: invalid === 0 ? [] : [`${file}: ${invalid} certificates do not parse and are left out`],
  };
}

function certificateBlocks(text: string): string[] {
  const blocks: string[] = [];
  for (let at = text.indexOf(BEGIN); at !== -1; at = text.indexOf(BEGIN, at + BEGIN.length)) {
    const end = text.indexOf(END, at);
    if (end === -1) break;
    blocks.push(text.slice(at, end + END.length));
  }
  return blocks;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

function labelCertificates(label: string, certificates: readonly string[]): string {
  return `# ${label.replaceAll(/[^\x20-\x7e]/g, '?')}\n${certificates.map((pem) => `${pem.trim()}\n`).join('')}`;
}

async function isSameFile(a: string, b: string): Promise<boolean> {
  if (path.resolve(a) === path.resolve(b)) return true;
  try {
    return (await realpath(a)) === (await realpath(b));
  } catch {
    return false;
  }
}
