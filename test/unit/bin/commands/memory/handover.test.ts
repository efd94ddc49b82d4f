import { expect, it } from 'vitest';
import { itemLines } from '../../../../../bin/commands/items.ts';
import { digestLines, placeArguments } from '../../../../../bin/commands/memory/around.ts';
import { handoverSections, handoverText } from '../../../../../bin/commands/memory/handover.ts';
import { displayWidth } from '../../../../../bin/terminal/table.ts';
import type { Item, ProjectView } from '../../../../../memory/index.ts';

const plain = (_: string, text: string): string => text;
const at = '2026-11-21T11:00:00.000Z';
const base = {
  origin: 'user',
  node_id: 'mem_1',
  title: 't',
  session_id: 's',
  project: 'github.com/o/shop',
  at,
} as const;
const items: Item[] = [
  {
    ...base,
    id: 'aaaaaa',
    kind: 'todo',
    text: '키를 금요일까지 갱신 🔑 ask @ilse whether the gateway of the parcel service accepts <b>both</b> keys',
  },
  { ...base, id: 'bbbbbb', kind: 'decision', text: 'use pg-boss' },
  { ...base, id: 'cccccc', kind: 'outcome', text: 'The queue is in.' },
  { ...base, id: 'dddddd', kind: 'decision', text: 'use the mirror', origin: 'external' },
];
const fact = { concept: 'port', value: 'port 4711', polarity: 'positive', origin: 'user', node_id: 'mem_1' } as const;
const view = { facts: [fact], files: [{ path: 'src/db.ts' }] } as unknown as ProjectView;

it('makes a text to paste, without what came from outside, markup or mentions', () => {
  const text = handoverText('github.com/o/shop', handoverSections(items, view, 'handover'), 'md');
  expect(text).toContain(
    '## shop\n\n### Done\n\n- The queue is in.\n\n### Decisions\n\n- use pg-boss\n\n### Open\n\n- 키를',
  );
  expect(text).toContain('ask `@ilse` whether the gateway of the parcel service accepts &lt;b>both');
  expect(text).toContain('### Statements and values\n\n- port 4711\n\n### Files\n\n- src/db.ts\n');
  expect(text).not.toContain('mirror');
  const html = handoverText('shop', handoverSections(items, view, 'pr'), 'html');
  expect(html).toContain('<h3>Decisions</h3>\n<ul>\n<li>use pg-boss</li>\n</ul>');
  expect(html).toContain('accepts &lt;b&gt;both&lt;/b&gt; keys');
  expect(html).not.toContain('Statements');
});

it.each([60, 80, 120, 200])('lists of items fit into %i columns', (width) => {
  const look = { width, nowMs: Date.parse(at) + 3_600_000, paint: plain };
  const lines = [...itemLines(items, 'TO DO', { ...look, projects: true }), ...digestLines(items, look)];
  for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
  expect(lines[0]).toBe('#  ID      AGE  TO DO');
  expect(lines).toContain('2  bbbbbb  1 h  shop: use pg-boss');
  expect(lines).toContain('- decided: use pg-boss');
});

it('opens an editor at the line of a memory where it can', () => {
  const place = { file: '/m/s.md', line: 7 };
  expect(placeArguments('/usr/bin/vim', place)).toEqual(['+7', '/m/s.md']);
  expect(placeArguments('code', place)).toEqual(['--goto', '/m/s.md:7']);
  expect(placeArguments('ed', place)).toEqual(['/m/s.md']);
});
