import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { homePaths } from '../../../../common/paths.ts';
import { importFile } from '../../../../engine/api/import-file.ts';
import type { Memory } from '../../../../memory/index.ts';
import type { MemoryNode, StoredBrief } from '../../../../memory/model/node.ts';
import { type ArchiveFormat, parseArchive, renderArchive } from '../../../../memory/storage/archive.ts';
import { openNodeFiles } from '../../../../memory/storage/fs/node-files.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { anyNode, hostileText } from '../../../helpers/random-nodes.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const open: Memory[] = [];
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.maintenance.close();
});

const SEED = 7;
const FORMATS: readonly ArchiveFormat[] = ['md', 'jsonl'];
const LONG = 50_000;

/** What people and models write: code, headings, lists, other scripts, endings of other systems, nothing, too much. */
const shortText = fc.oneof(
  hostileText,
  fc.constantFrom(
    '',
    '```ts\n## mem_20260301_101500_00000b x\nconst a = 1;\n```',
    '~~~\n# Session\n---\nsession_id: x\n---\n~~~',
    '# Brief\n## Active Work Context\n- a claim',
    'one\r\ntwo\r\n\r\n### Facts\r\n- {"concept":"x"}',
    '<!-- comet-cc-export 1 -->',
    '{"comet-cc-export":1}\n{"node":{}}',
    '배포 포트는 5433입니다. デプロイのポート 😀 e\u0301',
    '\u0000\u0007\u2028\u2029\u0085',
  ),
);
const longText = fc
  .constantFrom('x', 'We keep port 5433. ', '\n## y\n', '\u{1f600}')
  .map((text) => text.repeat(LONG / text.length));
const saidText = fc.oneof({ weight: 7, arbitrary: shortText }, { weight: 1, arbitrary: longText });

const iso = fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true });
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const origin = fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const, 'external' as const);

/** Fields that only some nodes have. */
const rare = fc.record({
  modality: maybe(fc.constantFrom('dialog' as const, 'artifact_code' as const, 'external' as const)),
  released: maybe(fc.boolean()),
  superseded_as: maybe(fc.constantFrom('revised' as const, 'merged' as const)),
  detailed_by: maybe(hostileText),
  detailed_origin: maybe(origin),
  pinned_in: maybe(fc.array(hostileText, { maxLength: 2 })),
});
const storedNode: fc.Arbitrary<MemoryNode> = fc
  .tuple(anyNode, rare, saidText, saidText, maybe(iso))
  .map(([node, own, summary, detail, closed]) => {
    const facts = node.facts.map((fact) => ({
      ...fact,
      ...(closed === undefined ? {} : { valid_to: closed.toISOString(), superseded_by: node.node_id }),
    }));
    return defined({ ...node, ...own, facts, summary: summary || node.summary, detailed_summary: detail });
  });
const storedNodes = fc.uniqueArray(storedNode, { minLength: 1, maxLength: 5, selector: ({ node_id }) => node_id });

const claim = fc.record({ text: saidText, origin, sources: fc.array(fc.string(), { maxLength: 2 }) });
const briefs = fc.uniqueArray(
  fc.record({
    session_id: hostileText,
    project: fc.oneof(hostileText, fc.constant('')),
    updated_at: iso.map((date) => date.toISOString()),
    active: fc.array(claim, { maxLength: 2 }),
    hints: fc.array(claim, { maxLength: 2 }),
  }),
  { maxLength: 3, selector: ({ session_id }) => session_id },
);

function defined(node: MemoryNode): MemoryNode {
  return Object.fromEntries(Object.entries(node).filter(([, value]) => value !== undefined)) as MemoryNode;
}

const byId = (nodes: readonly MemoryNode[]): MemoryNode[] => nodes.toSorted((a, b) => (a.node_id < b.node_id ? -1 : 1));
const bySession = (all: readonly StoredBrief[]): StoredBrief[] =>
  all.toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1));
/** As it would be read from a file. */
const asRead = (text: string): string => Buffer.from(text).toString('utf8');

/** A memory on node files of its own, empty. */
async function emptyHome(): Promise<Memory> {
  const memory = await openRig(createDisk(), {
    llm: 'local',
    nodeFiles: await openNodeFiles(homePaths(await tempDir())),
  });
  open.push(memory);
  return memory;
}

describe.each(FORMATS)('an export as %s', (format) => {
  test('is read back unchanged with any content', () => {
    fc.assert(
      fc.property(storedNodes, briefs, (nodes, own) => {
        const read = parseArchive(asRead(renderArchive({ nodes, briefs: own }, format)));
        expect(byId(read.nodes)).toEqual(byId(nodes));
        expect(bySession(read.briefs)).toEqual(bySession(own));
      }),
      { numRuns: 150, seed: SEED },
    );
  });

  test('gives an empty home the same nodes and briefs, and adds nothing the second time', async () => {
    await fc.assert(
      fc.asyncProperty(storedNodes, briefs, async (nodes, own) => {
        const [from, to] = [await emptyHome(), await emptyHome()];
        // Whoever typed a secret into an archive does not get it into memory: what was taken over is what is compared.
        await from.imports.importArchive(renderArchive({ nodes, briefs: own }, 'jsonl'));
        const text = await from.library.exportAll(format);
        const { added } = await to.imports.importArchive(asRead(text));
        expect(added).toBe(nodes.length);
        expect(await to.library.exportAll(format)).toBe(text);
        expect(await to.library.exportAll('jsonl')).toBe(await from.library.exportAll('jsonl'));
        expect(await to.imports.importArchive(asRead(text))).toMatchObject({ added: 0, replaced: 0, briefs: 0 });
        for (const memory of open.splice(0)) await memory.maintenance.close();
      }),
      { numRuns: 25, seed: SEED },
    );
  });

  test('holds what memory made of any talk', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(saidText, saidText), { minLength: 1, maxLength: 6 }), async (said) => {
        const [from, to] = [await emptyHome(), await emptyHome()];
        from.capture.captureTurns(
          said.map(([prompt, answer], at) => talk(prompt, answer, { atMs: 1_800_000_000_000 + at })),
        );
        await from.maintenance.flush(60_000);
        const text = await from.library.exportAll(format);
        await to.imports.importArchive(asRead(text));
        expect(to.library.list({ all: true })).toEqual(from.library.list({ all: true }));
        expect(await to.library.exportAll(format)).toBe(text);
        expect(await to.imports.importArchive(asRead(text))).toMatchObject({ added: 0, replaced: 0, briefs: 0 });
        for (const memory of open.splice(0)) await memory.maintenance.close();
      }),
      { numRuns: 15, seed: SEED },
    );
  });
});

describe('turns as JSON lines', () => {
  const message = fc.record({ role: fc.constantFrom('user' as const, 'assistant' as const), content: saidText });

  test('come back verbatim, and are known the second time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(saidText, fc.array(message, { maxLength: 3 })), { minLength: 1, maxLength: 5 }),
        async (turns) => {
          const memory = await emptyHome();
          const lines = turns.flatMap(([prompt, more], at) =>
            [{ role: 'user', content: prompt }, ...more].map((each) => ({
              ...each,
              session_id: 's',
              turn_id: at,
              at: new Date(1_800_000_000_000 + at * 1_000).toISOString(),
            })),
          );
          const file = path.join(await tempDir(), 'turns.jsonl');
          await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
          const first = await importFile(memory.imports, { file, projectDir: '/home/dev/shop' });
          expect(first).toMatchObject({ kind: 'turns', turns: turns.length, added: turns.length });
          const restored = (await memory.library.restoreSession('s')).map(({ role, content }) => ({ role, content }));
          expect(restored).toEqual(lines.map(({ role, content }) => ({ role, content })));
          const again = await importFile(memory.imports, { file, projectDir: '/home/dev/shop' });
          expect(again).toMatchObject({ added: 0, known: turns.length });
          for (const each of open.splice(0)) await each.maintenance.close();
        },
      ),
      { numRuns: 25, seed: SEED },
    );
  });
});
