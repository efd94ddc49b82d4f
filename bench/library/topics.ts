/** How long a library of many topics takes: read for the first time and again, searched, shown, indexed and checked. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { homePaths } from '../../common/paths.ts';
import { openRealMemory } from '../real/product.ts';

const PROJECT_DIR = '/home/dev/shop';

/** Milliseconds by what was done. */
export async function timeTopics(count: number): Promise<Readonly<Record<string, number>>> {
  const home = await mkdtemp(path.join(tmpdir(), 'comet-bench-'));
  const topics = path.join(homePaths(path.join(home, '.comet-cc')).home, 'library', 'topics');
  await mkdir(topics, { recursive: true });
  for (let nth = 0; nth < count; nth += 1) await writeFile(path.join(topics, `t${nth}.md`), pageText(nth));
  const memory = await openRealMemory(home);
  const { library, maintenance } = memory;
  const times: Record<string, number> = {};
  const timed = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const startMs = performance.now();
    await work();
    times[name] = Math.round(performance.now() - startMs);
  };
  const search = () => library.searchTopics(`Which port does service ${count - 1} listen on?`, { top: 3 });
  try {
    await timed('first read', () => library.listTopics({}));
    await timed('read again', () => library.listTopics({}));
    await timed('first search', search);
    await timed('search again', search);
    await timed('block that is linked', library.linkedBlock);
    await timed('index', maintenance.refreshIndex);
    await timed('pass', () => maintenance.dream({ dryRun: false }));
    await timed('lint', maintenance.lintPages);
    return times;
  } finally {
    await maintenance.close();
    await rm(home, { recursive: true, force: true });
  }
}

function pageText(nth: number): string {
  const head = {
    title: `Service ${nth}`,
    scope: 'project',
    project: PROJECT_DIR,
    topic: `t${nth}`,
    updated: '2026-03-01',
  };
  const front = Object.entries(head).map(([key, value]) => `${key}: ${value}`);
  const source = `[valid_from:: 2026-03-${String((nth % 28) + 1).padStart(2, '0')}] ([mem_20260301_090000_abcdef](#))`;
  const lines = [
    `- Service ${nth} listens on port ${10_000 + nth} ${source}`,
    `- Ask team ${nth % 50} before you change it`,
  ];
  return ['---', ...front, '---', '', ...lines, ''].join('\n');
}
