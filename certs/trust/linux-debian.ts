import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { CometError } from '../../common/errors.ts';
import { readFileIfPresent } from '../../common/files.ts';
import type { TrustPlan, TrustStore } from './index.ts';

const END = '-----END CERTIFICATE-----';
const TIMEOUT_MS = 120_000;

export interface DebianTrustOptions {
  /** `/`, or a directory with the same layout below it. */
  readonly sysroot: string;
  /** Whether commands need sudo; unless told, when we are not root. */
  readonly sudo?: boolean;
}

/** Debian and Ubuntu: the local directory of `update-ca-certificates`. */
export function createDebianTrust(options: DebianTrustOptions): TrustStore {
  const at = (...parts: string[]): string => path.join(options.sysroot, ...parts);
  const localDir = at('usr/local/share/ca-certificates');
  const storeDir = at('etc/ssl/certs');
  const ours = path.join(localDir, 'comet-cc.crt');
  const sudo = (options.sudo ?? process.getuid?.() !== 0) ? ['sudo'] : [];
  const update = [...sudo, 'update-ca-certificates', ...(options.sysroot === '/' ? [] : elsewhere(at))];

  const installCommands = (rootFile: string): string[][] => [
    [...sudo, 'install', '-D', '-m', '0644', rootFile, ours],
    update,
  ];

  async function describe(rootFile: string): Promise<TrustPlan> {
    const root = await readRoot(rootFile);
    return {
      commands: installCommands(rootFile),
      fingerprint: root.fingerprint256,
      files: [ours, path.join(storeDir, 'comet-cc.pem'), path.join(storeDir, 'ca-certificates.crt')],
      certificate: `${root.subject}, valid until ${root.validTo}`,
    };
  }

  async function install(rootFile: string): Promise<void> {
    const { fingerprint256 } = await readRoot(rootFile);
    const standing = await readFileIfPresent(ours);
    if (standing !== null && !fingerprintsIn(standing).includes(fingerprint256)) {
      throw new CometError('trust_failed', `${ours} holds another certificate; remove it with comet-cc uninstall-ca`);
    }
    for (const command of installCommands(rootFile)) await run(command);
    if (!(await isInstalled(fingerprint256))) {
      throw new CometError('trust_failed', `${ours} was written, but ${storeDir} does not hold it`);
    }
  }

  async function remove(fingerprint: string): Promise<boolean> {
    const files = await localFilesWith(fingerprint);
    if (files.length === 0 && !(await isInstalled(fingerprint))) return false;
    for (const file of files) await run([...sudo, 'rm', '-f', '--', file]);
    await run([...update, '--fresh']);
    if (await isInstalled(fingerprint)) {
      throw new CometError('trust_failed', `${storeDir} still holds the certificate ${fingerprint}; remove it by hand`);
    }
    return true;
  }

  async function isInstalled(fingerprint: string): Promise<boolean> {
    const all = (await readFileIfPresent(path.join(storeDir, 'ca-certificates.crt'))) ?? '';
    if (fingerprintsIn(all).includes(fingerprint)) return true;
    const single = await readFileIfPresent(path.join(storeDir, 'comet-cc.pem'));
    if (single !== null && fingerprintsIn(single).includes(fingerprint)) return true;
    return (await localFilesWith(fingerprint)).length > 0;
  }

  async function localFilesWith(fingerprint: string): Promise<string[]> {
    const names = await readdir(localDir).catch(() => []);
    const files = names.filter((name) => name.endsWith('.crt')).map((name) => path.join(localDir, name));
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
    return files.filter((_, i) => fingerprintsIn(texts[i] ?? '').join() === fingerprint);
  }

  return { name: 'Debian and Ubuntu (update-ca-certificates)', describe, install, remove, isInstalled };
}

function elsewhere(at: (...parts: string[]) => string): string[] {
  return [
    ...['--certsconf', at('etc/ca-certificates.conf')],
    ...['--certsdir', at('usr/share/ca-certificates')],
    ...['--localcertsdir', at('usr/local/share/ca-certificates')],
    ...['--etccertsdir', at('etc/ssl/certs')],
    ...['--hooksdir', at('etc/ca-certificates/update.d')],
  ];
}

async function readRoot(rootFile: string): Promise<X509Certificate> {
  const pem = await readFileIfPresent(rootFile);
  if (pem === null) throw new CometError('ca_unreadable', `${rootFile} is missing; run comet-cc install-ca first`);
  return new X509Certificate(pem);
}

function fingerprintsIn(text: string): string[] {
  return text
    .split(END)
    .slice(0, -1)
    .flatMap((block) => {
      try {
        return [new X509Certificate(`${block.slice(block.lastIndexOf('-----BEGIN'))}${END}\n`).fingerprint256];
      } catch {
        return []; // Not every block of a system's bundle must be one that OpenSSL can read.
      }
    });
}

async function run([command = '', ...args]: readonly string[]): Promise<void> {
  try {
    // sudo asks on the terminal itself.
    await execa(command, args, { stdin: 'inherit', stdout: 'pipe', stderr: 'pipe', timeout: TIMEOUT_MS });
  } catch (error) {
    const { shortMessage } = error as { shortMessage?: string };
    throw new CometError('trust_failed', `${shortMessage ?? command}; nothing more was done`, { cause: error });
  }
}
