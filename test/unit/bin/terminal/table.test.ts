import { describe, expect, it } from 'vitest';
import { listLines } from '../../../../bin/commands/memory/list.ts';
import { hitLines } from '../../../../bin/commands/memory/search.ts';
import { displayWidth, table, truncate } from '../../../../bin/terminal/table.ts';
import { frame } from '../../../../bin/terminal/watch.ts';
import type { Paint } from '../../../../engine/api/render.ts';
import { type PublicHit, publicNode } from '../../../../memory/index.ts';
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
  it.each([1, 20, 40, 63, 64, 80, 100, 120, 200])(
    'no line is wider than %i columns, where a row can be that narrow',
    (width) => {
      for (const line of listLines(nodes, { width, nowMs: NOW })) {
        expect(displayWidth(line)).toBeLessThanOrEqual(Math.max(width, width < 64 ? 3 : 64));
      }
    },
  );

  it('gives each memory two lines in a narrow terminal', () => {
    expect(listLines(nodes.slice(0, 1), { width: 40, nowMs: NOW })).toEqual([
      'mem_20261121_110000_a1b2c3  1 h ago',
      '  운영 서버의 데이터베이스 포트는 5433…',
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
    expect(lines[1]).toContain('<cyan>deploy,ports,데이터베이스</cyan>');
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
    const lines = table(
      [
        { title: 'N', cells: ['1', '22'], right: true },
        { title: 'X', cells: ['a', 'b'] },
      ],
      40,
    );
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
    const [, summary, raw, why] = hitLines(
      hit,
      { query: 'port 5433', explain: false, nowMs: NOW },
      { paint: colors, width: 90 },
    );
    expect(summary).toContain('<bold>5433번으로</bold>');
    expect(raw).toContain('<bold>5433번</bold>');
    expect(why).toBe('<dim>  words: 5433번으로, 5433번; fts #1, meaning #3</dim>');
  });

  it('says so where no word is the same', () => {
    const lines = hitLines(
      hit,
      { query: 'quince', explain: false, nowMs: NOW },
      { paint: (_, text) => text, width: 90 },
    );
    expect(lines.at(-1)).toBe('  no common word, by meaning; fts #1, meaning #3');
  });
});

describe('a screen that is drawn again', () => {
  it('holds what fits, and says how much does not', () => {
    expect(frame(['a', 'b'], 5)).toBe('\u001b[H\u001b[2Ja\nb');
    expect(frame(['a', 'b', 'c', 'd', 'e'], 4)).toBe('\u001b[H\u001b[2Ja\nb\n… 3 more');
  });
});
