import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HomePaths, homePaths } from '../../../../common/paths.ts';
import { hookCommands, ownHooks } from '../../../../install/claude-code/entries.ts';
import { editSettings, installEntries, planSettings, uninstallEntries } from '../../../../install/claude-code/index.ts';

const quoted = (text: string): string => `'${text}'`;
const COMMANDS = ['/opt/comet-cc/dist/hooks', '/srv/comet-cc/dist/hooks'].map((folder) =>
  hookCommands('/usr/bin/node', folder, quoted),
);
const VARIABLES = ['8443', '9000'].map((port) => ({
  HTTPS_PROXY: `http://comet-cc:TOKEN@127.0.0.1:${port}`,
  NODE_EXTRA_CA_CERTS: '/h/certs/bundle.pem',
}));
const OURS = /comet-cc|bundle\.pem/;

/** What a user may have: as programs write it, and as nobody would. */
const ODD = [
  '{}',
  '{\n}',
  '{ }\n',
  '\n{\n\n}\n\n',
  '{"a":1}',
  '{"env": { "HTTPS_PROXY" : "http\\u003a//corp:3128" },\n "numbers": [1.0, 2e3], "x": "\\u00e9"}',
  '{\r\n\t"model": "opus",\r\n\t"env": {\r\n\t\t"A": "1"\r\n\t},\r\n\t"hooks": { }\r\n}\r\n',
  '{"hooks":{"SessionStart":[ ],"Stop":[]}, "env":{ }}',
  '{"env":\n{"NODE_EXTRA_CA_CERTS"\n:\n"/corp.pem"\n,\n"B":"{ }"\n}\n,\n"hooks":{"SessionStart":[{"hooks":[\n]}]}}',
] as const;

const text = fc.string({ maxLength: 6 });
const group = fc.record({ matcher: text, hooks: fc.array(fc.record({ command: text }), { maxLength: 2 }) });
const settings = fc
  .record(
    {
      model: text,
      env: fc.dictionary(fc.constantFrom('HTTPS_PROXY', 'NODE_EXTRA_CA_CERTS', 'PATH', '{ }'), text),
      hooks: fc.dictionary(fc.constantFrom('SessionStart', 'SessionEnd', 'Stop'), fc.array(group, { maxLength: 2 })),
      permissions: fc.record({ allow: fc.array(text, { maxLength: 2 }) }),
    },
    { requiredKeys: [] },
  )
  .chain((value) => fc.constantFrom(0, 2, 4, '\t').map((indent) => JSON.stringify(value, null, indent)))
  .chain((json) => fc.constantFrom('', '\n', '\r\n').map((end) => json.replaceAll('\n', end || '\n') + end));
const before = fc.oneof(fc.constantFrom(...ODD), settings, fc.constant(null));
const act = fc.record({ what: fc.constantFrom('hooks', 'env'), nth: fc.constantFrom(0, 1, null) });

class Bench {
  readonly #dir: string;
  readonly file: string;
  readonly paths: HomePaths;
  readonly #has = { hooks: null as number | null, env: null as number | null };

  constructor(dir: string) {
    this.#dir = dir;
    this.file = path.join(dir, '.claude', 'settings.json');
    this.paths = homePaths(path.join(dir, 'home'));
  }

  async given(original: string | null): Promise<void> {
    await rm(path.join(this.#dir, '.claude'), { recursive: true, force: true });
    if (original === null) return;
    await mkdir(path.dirname(this.file));
    await writeFile(this.file, original);
    await chmod(this.file, 0o644);
  }

  /** `nth` null: undone. */
  async does({ what, nth }: { readonly what: string; readonly nth: number | null }): Promise<void> {
    this.#has[what as 'hooks' | 'env'] = nth;
    if (what === 'hooks' && nth === null) await uninstallEntries(this.paths, 'hooks', [this.file]);
    else if (what === 'hooks') await installEntries(this.paths, 'hooks', this.file, COMMANDS[nth as 0 | 1] as never);
    else if (nth === null) await uninstallEntries(this.paths, 'env', []);
    else await editSettings(this.paths, await planSettings(this.file, VARIABLES[nth] as never));
    await this.#isConsistent();
  }

  async #isConsistent(): Promise<void> {
    const { hooks, env } = this.#has;
    const now = await readFile(this.file, 'utf8').catch(() => '{}');
    const parsed = JSON.parse(now) as { env?: Record<string, string> };
    const wanted = hooks === null ? [] : Object.values(COMMANDS[hooks] as object);
    expect(Object.values(ownHooks(now, 'x')).flat().sort()).toEqual([...wanted].sort());
    for (const [name, value] of Object.entries(VARIABLES[env ?? 0] as object)) {
      if (env === null) expect(parsed.env?.[name] ?? '').not.toMatch(OURS);
      else expect(parsed.env?.[name]).toBe(value);
    }
    if (env !== null) expect((await stat(this.file)).mode & 0o777).toBe(0o600);
  }
}

describe("hooks and variables in one file of Claude Code's settings", () => {
  it('are put in and taken out in any order, and what was there before comes back to the byte', async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'comet-edits-'));
    const bench = new Bench(dir);
    await fc.assert(
      fc.asyncProperty(before, fc.array(act, { maxLength: 6 }), fc.boolean(), async (original, acts, hooksFirst) => {
        await bench.given(original);
        for (const each of acts) await bench.does(each);
        const last = ['hooks', 'env'];
        for (const what of hooksFirst ? last : last.reverse()) await bench.does({ what, nth: null });
        expect(existsSync(path.dirname(bench.file))).toBe(original !== null);
        if (original === null) return;
        expect(await readFile(bench.file, 'utf8')).toBe(original);
        expect((await stat(bench.file)).mode & 0o777).toBe(0o644);
        expect(await readdir(path.dirname(bench.file))).toEqual(['settings.json']);
      }),
      { numRuns: 120, seed: 11 },
    );
    expect(existsSync(bench.paths.home) ? await readdir(bench.paths.home) : []).toEqual([]);
    await rm(dir, { recursive: true });
  });
});
