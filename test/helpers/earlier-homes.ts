import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Homes that commit d6206c7 wrote; see test/fixtures/homes/README.md. */
export const EARLIER_HOMES = ['d6206c7-demo', 'd6206c7-rich', 'd6206c7-killed'] as const;
export type EarlierHome = (typeof EARLIER_HOMES)[number];

/** What the program that wrote a home printed of it. */
export interface ExpectedHome {
  readonly stats: Readonly<Record<string, unknown>>;
  readonly tokens: Readonly<Record<string, number>>;
  readonly problems: readonly { readonly file: string; readonly message: string }[];
  readonly quarantine: readonly string[];
  readonly snapshots: readonly string[];
  /** By session id; `restored` is the SHA-256 of what `memory restore` prints, as JSON without spaces. */
  readonly sessions: Readonly<Record<string, { readonly brief: string; readonly restored: string }>>;
  /** By node id; `raw` has the SHA-256 of each message. */
  readonly views: Readonly<
    Record<
      string,
      { readonly raw: readonly string[]; readonly children: readonly string[]; readonly aliases: string[] }
    >
  >;
  /** Without the fields that no later version has, in the order of their ids. */
  readonly nodes: readonly (Readonly<Record<string, unknown>> & { readonly node_id: string })[];
  readonly explained: Readonly<Record<'request_id' | 'received' | 'sent', unknown>> | null;
}

function getArchive(name: EarlierHome): string {
  return fileURLToPath(new URL(`../fixtures/homes/${name}.tar.gz`, import.meta.url));
}

export function unpackHome(name: EarlierHome, home: string): ExpectedHome {
  mkdirSync(home, { recursive: true });
  execFileSync('tar', [
    '-xzf',
    getArchive(name),
    '--no-same-owner',
    '-C',
    home,
    '--strip-components=2',
    `${name}/home`,
  ]);
  const expected = execFileSync('tar', ['-xzOf', getArchive(name), `${name}/expected.json`], { encoding: 'utf8' });
  return JSON.parse(expected) as ExpectedHome;
}
