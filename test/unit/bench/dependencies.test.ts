import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

it('docs/DEPENDENCIES.md lists the dependencies of package.json, at their versions, and no other', () => {
  const { dependencies } = JSON.parse(text('package.json')) as { dependencies: Record<string, string> };
  const rows = text('docs/DEPENDENCIES.md').matchAll(/^\| (\S+) \| (\d\S*) \| (.+?) \|/gm);
  expect(Object.fromEntries([...rows].map(([, name, version]) => [name, version]))).toEqual(dependencies);
});

describe('what an installation runs and takes', () => {
  const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
  const { packages } = JSON.parse(text('package-lock.json')) as { packages: Record<string, Locked> };
  const locked = Object.entries(packages).filter(([name]) => name !== '');

  it('has no install script of its own', () => {
    expect(Object.keys(scripts).filter((name) => /^(?:pre|post)?install$/.test(name))).toEqual([]);
  });

  it('is locked by a digest, but for files that are built for one platform', () => {
    const used = locked.filter(([, { dev, os }]) => dev !== true && os === undefined);
    expect(used.length).toBeGreaterThan(200);
    expect(used.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? '')).map(([name]) => name)).toEqual([]);
    const root = packages[''];
    const { dependencies } = JSON.parse(text('package.json')) as { dependencies: Record<string, string> };
    expect(root?.dependencies).toEqual(dependencies);
  });

  it('names every package that has an install script in docs/SECURITY.md; none of them is needed', () => {
    const scripted = locked.filter(([, { hasInstallScript }]) => hasInstallScript === true);
    const named = [...text('docs/SECURITY.md').matchAll(/`([^`\s]+)`/g)].map(([, name]) => `node_modules/${name}`);
    for (const [name, { optional }] of scripted) {
      expect(named).toContain(name);
      expect(optional).toBe(true);
    }
  });
});

interface Locked {
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly os?: readonly string[];
  readonly optional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

function text(file: string): string {
  return readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
}
