import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  /** Files of the repository that it imports, types included. */
  readonly imports: readonly string[];
}

/** Every file below `dirs` that ends in one of `endings`. */
export function readTree(dirs: readonly string[], endings: readonly string[]): SourceFile[] {
  return dirs.flatMap((dir) =>
    readdirSync(path.join(ROOT, dir), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
      .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
      .filter((file) => !/(^|\/)(node_modules|dist)\//.test(file))
      .map(readSource),
  );
}

export function readSource(file: string): SourceFile {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  return { path: file, text, lines: text.split('\n').slice(0, -1), imports: findImports(file, text) };
}

export function isInTree(file: string): boolean {
  return existsSync(path.join(ROOT, file));
}

// `import … from '…'`, `import('…')`, `import '…'`, `export … from '…'` and `new URL('…', import.meta.url)`.
const IMPORT = /\b(?:from|import|URL)\s*\(?\s*'(\.{1,2}\/[^'\n]+\.(?:ts|mjs|js))'/g;

function findImports(file: string, text: string): string[] {
  const found = [...text.matchAll(IMPORT)].map(([, target]) =>
    path.posix.join(path.posix.dirname(file), target as string),
  );
  // What is built is the same tree again, and there only after a build.
  return [...new Set(found)].filter((target) => !target.startsWith('dist/') && isInTree(target));
}

/** Groups of files that import each other, directly or by way of others (Tarjan's strongly connected components). */
export function findCycles(files: readonly SourceFile[]): string[][] {
  const imports = new Map(files.map((file) => [file.path, file.imports]));
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string): void => {
    index.set(file, index.size);
    low.set(file, index.get(file) as number);
    stack.push(file);
    for (const next of imports.get(file) ?? []) {
      if (!index.has(next)) visit(next);
      else if (!stack.includes(next)) continue;
      low.set(file, Math.min(low.get(file) as number, low.get(next) as number));
    }
    if (low.get(file) !== index.get(file)) return;
    const members = stack.splice(stack.indexOf(file));
    if (members.length > 1) cycles.push(members.sort());
  };
  for (const file of files) if (!index.has(file.path)) visit(file.path);
  return cycles;
}

const OPENING =
  /(\bfunction\b.*|=>|^\s*(async |\*|get |set |static |private )*[\w#]+(<.*>)?\(.*\)(: .*)?|^\s*\)(: .*)?)\s\{$/;
const STATEMENT = /^\s*(\} )?(if|for|while|switch|catch|else|do|try|with)\b/;

const NO_CODE = /^\s*($|\/\/|\/?\*)/;

/** Lines of code in the body of each function, read off the indentation that the formatter gives. */
export function measureFunctions(file: SourceFile): { readonly line: number; readonly length: number }[] {
  return file.lines.flatMap((text, at) => {
    if (!OPENING.test(text) || STATEMENT.test(text)) return [];
    const indent = /^\s*/.exec(text)?.[0] ?? '';
    const end = file.lines.findIndex((line, other) => other > at && line.startsWith(`${indent}}`));
    const body = file.lines.slice(at + 1, end).filter((line) => !NO_CODE.test(line));
    return end < 0 ? [] : [{ line: at + 1, length: body.length }];
  });
}

const COMMENT = /^\s*(?:\/\/|\/?\*)(.*)|\s\/\/ (.*)$/;
const QUOTED = /`([^`\s]+)`/g;

/** Words in backticks: anywhere in a document, in the comments of a program. */
export function quotedWords(file: SourceFile): string[] {
  const prose = file.path.endsWith('.md')
    ? file.text.replaceAll(/^```.*?^```/gms, '')
    : file.lines.map((line) => COMMENT.exec(line)?.slice(1).join('') ?? '').join('\n');
  return [...prose.matchAll(QUOTED)].map(([, word]) => word as string);
}
