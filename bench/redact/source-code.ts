import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Ordinary code, no secret in it: these folders' TypeScript and JavaScript, and type files of packages. */
const FOLDERS = ['bin', 'proxy', 'memory', 'certs', 'common', 'hooks'];
const PACKAGES = ['undici', 'zod', 'execa', 'commander', 'apache-arrow', '@types/node', 'node-forge'];

/** Texts of files, below `root`, in a fixed order. */
export function sourceCode(root: string): string[] {
  const own = FOLDERS.flatMap((folder) => filesBelow(path.join(root, folder), /\.ts$/));
  const foreign = PACKAGES.flatMap((name) => filesBelow(path.join(root, 'node_modules', name), /\.(?:d\.ts|[cm]?js)$/));
  return [...own, ...foreign].map((file) => readFileSync(file, 'utf8')).filter((text) => !isMinified(text));
}

function filesBelow(folder: string, name: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(file))
    .toSorted()
    .map((file) => path.join(folder, file));
}

function isMinified(text: string): boolean {
  return text.length > 2_000 && text.length / (text.split('\n').length + 1) > 400;
}
