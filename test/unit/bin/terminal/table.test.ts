import { describe, expect, it } from 'vitest';
import { listLines } from '../../../../bin/commands/memory/list.ts';
import { hitLines, searchLines } from '../../../../bin/commands/memory/search.ts';
import { displayWidth, table, truncate } from '../../../../bin/terminal/table.ts';
import { oneLine } from '../../../../common/text.ts';
import type { Paint } from '../../../../engine/api/render.ts';
import { type PublicHit, type PublicNode, publicNode } from '../../../../memory/index.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const colors: Paint = (style, text) => `<${style}>${text}</${style}>`;
const bare = (line: string): string => line.replace(/<\/?[a-z]+>/g, '');
const nodes = [
  {
    summary: '운영 서버의 데이터베이스 포트는 5433번으로 정했습니다 그리고 아무도 바꾸지 않습니다',
    importance: 'HIGH',
  },
  { summary: '本番環境のデータベースはポート5433で待ち受けることに決めました', importance: 'MED' },
  {
    summary: 'The family 👨‍👩‍👧‍👦 emoji and a plain sentence that is longer than any narrow terminal is wide',
    importance: 'LOW',
  },
].map((over, at) =>
  publicNode(
    makeNode({
      ...over,
      node_id: `mem_20261121_11000${at}_a1b2c3`,
      created_at: '2026-11-21T11:00:00.000Z',
      topic_tags: ['deploy', 'ports', '데이터베이스', 'more'],
    } as never),
  ),
);

describe('memory ls', () => {
  it.each([40, 60, 80, 100, 120, 200])('no line is wider than %i columns, and no word is broken', (width) => {
    const words = new Set(nodes.flatMap((node) => [...oneLine(node.summary).split(' '), 'shop']));
    for (const projects of [false, true]) {
      const [, ...lines] = listLines(nodes, { width, nowMs: NOW, projects });
      for (const line of lines) {
        expect(displayWidth(line)).toBeLessThanOrEqual(width);
        const cut = / (\S+)…/.exec(line)?.[1];
        // Japanese sets no spaces.
        if (cut !== undefined && !cut.startsWith('本番')) expect(words).toContain(cut);
      }
    }
  });

  it('gives each memory a row, a short id, its age, its title and what is to be known in words', () => {
    const item = { text: 'x', origin: 'user', turn: 'e' } as const;
    const told = { ...nodes[2], open: [item, item], decisions: [{ ...item, by: 'user' }], pinned_from: 'active' };
    const listed = [told, nodes[0]] as PublicNode[];
    expect(listLines(listed, { width: 100, nowMs: NOW })).toEqual([
      '#  ID      AGE  TITLE',
      '1  a1b2c3  1 h  The family 👨👩👧👦 emoji and a plain sentence that is…   2 to-dos, decision, pinned',
      '2  a1b2c3  1 h  운영 서버의 데이터베이스 포트는 5433번으로 정했습니다…',
    ]);
    expect(listLines(listed, { width: 60, nowMs: NOW, projects: true }).slice(1)).toEqual([
      '1  a1b2c3  1 h  The family 👨👩👧👦 emoji and a plain…',
      '   shop, 2 to-dos, decision, pinned',
      '2  a1b2c3  1 h  운영 서버의 데이터베이스 포트는 5433번으로…',
      '   shop',
    ]);
  });

  it('aligns columns with any content, colored or not', () => {
    const lines = listLines(nodes, { width: 160, nowMs: NOW, paint: colors });
    expect(lines.map(bare)).toEqual(listLines(nodes, { width: 160, nowMs: NOW }));
    const starts = lines.slice(1).map((line, at) => {
      const text = bare(line);
      return displayWidth(text.slice(0, text.indexOf((nodes[at]?.summary ?? '').slice(0, 5))));
    });
    expect(new Set(starts).size).toBe(1);
    expect(lines[1]).toContain('<bold>운영');
  });
});

describe('text of some width', () => {
  it('is never cut within what is seen as one character', () => {
    expect(truncate('ab👨‍👩‍👧‍👦cd', 5)).toBe('ab👨‍👩‍👧‍👦…');
    expect(truncate('ab👨‍👩‍👧‍👦cd', 4)).toBe('ab…');
    expect(truncate('한국어', 4)).toBe('한…');
  });

  it('right-aligned cells end where they should', () => {
    const rows = [
      [1, 'a'],
      [22, 'b'],
    ] as const;
    const lines = table(rows, 40, [
      { title: 'N', cell: ([n]) => String(n), right: true },
      { title: 'X', cell: ([, x]) => x },
    ]);
    expect(lines).toEqual([' N  X', ' 1  a', '22  b']);
  });
});

describe('memory search', () => {
  const hit = {
    node: nodes[0],
    score: 0.5,
    line: { nodeId: '', text: '', origin: 'user' },
    raw: { text: '포트는 5433번', turn: 't' },
    lanes: { fts: { rank: 1, score: 7 }, meaning: { rank: 3, score: 0.4 } },
  } as unknown as PublicHit;

  it('marks the words of the question, and says what found it', () => {
    const asked = { query: 'port 5433', explain: true, nowMs: NOW };
    const lines = hitLines([hit], asked, { paint: colors, width: 90 });
    expect(lines[0]).toContain('<bold>5433번</bold>');
    expect(lines.at(-1)).toContain('words: 5433번으로, 5433번; fts #1 7.000, meaning #3 0.400</dim>');
    const other = hitLines([hit], { ...asked, query: 'quince' }, { paint: (_, text) => text, width: 90 });
    expect(other.at(-1)).toContain('no common word, by meaning; fts #1');
  });

  it.each([60, 80, 120, 200])('no line is wider than %i columns', (width) => {
    const hits = nodes.map((node) => ({ ...hit, node, raw: { text: `${node.summary} ${node.summary}`, turn: 't' } }));
    const asked = { query: '포트 port sentence', explain: false, nowMs: NOW };
    for (const line of searchLines(hits as unknown as PublicHit[], asked, { paint: (_, text) => text, width })) {
      expect(displayWidth(line)).toBeLessThanOrEqual(width);
    }
  });
});
