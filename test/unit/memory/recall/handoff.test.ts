import { describe, expect, it } from 'vitest';
import type { MemoryNode } from '../../../../memory/model/node.ts';
import { handedItems } from '../../../../memory/recall/handoff.ts';
import { readProjectState, shortStateLine } from '../../../../memory/recall/project-state.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const node = (at: number, origin: 'user' | 'external' = 'user'): MemoryNode =>
  makeNode({
    node_id: `mem_20260301_10${String(at).padStart(2, '0')}00_00000a`,
    session_id: `s-${at % 2}`,
    valid_from: `2026-03-01T10:${String(at).padStart(2, '0')}:00.000Z`,
    summary: 'worked on it',
    origin,
    title: `Piece ${at}`,
    outcome: `Piece ${at} went out with version ${at}.`,
    open: [{ text: `ask person ${at} for the report`, turn: `t${at}`, origin }],
    decisions: [{ text: `use option ${at}`, turn: `t${at}`, origin, by: 'user' }],
  });

const handed = (nodes: readonly MemoryNode[], most = 20, told: readonly string[] = []): string[] =>
  handedItems(readProjectState(nodes), { sessionId: 's-0', most, told }).map((item) => shortStateLine(item).text);

describe('what a session is handed over', () => {
  const many = Array.from({ length: 40 }, (_, at) => node(at));

  it('is open items, then decisions, then the outcomes of other memories, of other sessions', () => {
    const lines = handed(many);
    expect(lines).toHaveLength(18);
    expect(lines[0]).toBe('- [mem_20260301_103900_00000a] open: ask person 39 for the report');
    const kinds = lines.map((line) => /\] (\w+):/.exec(line)?.[1]);
    expect(kinds.join(' ')).toMatch(/^(?:open ){8}(?:decided ){6}(?:done ?){4}$/);
    expect(lines.some((line) => line.includes('person 38'))).toBe(false);
    expect(handed(many, 3)).toHaveLength(3);
  });

  it('is nothing of a stranger, and nothing that the brief tells', () => {
    expect(handed([node(1, 'external')])).toEqual([]);
    expect(handed([node(1)], 20, ['- Open: ask person 1 for the report', '- Decided: use option 1'])).toEqual([
      '- [mem_20260301_100100_00000a] done: Piece 1',
    ]);
    const text = 'old invoices with duplicate numbers must be renumbered';
    const reworded = { ...node(1), open: [{ text, turn: 't1', origin: 'assistant' as const }], decisions: [] };
    const says = 'renumber the old invoices that have duplicate numbers';
    expect(handed([reworded], 20, [`- Open: ${says}`])).toEqual(['- [mem_20260301_100100_00000a] done: Piece 1']);
    for (const line of [`- Done: ${says}`, '- Open: duplicate invoices', `- Next: do not ${says}`])
      expect(handed([reworded], 20, [line])[0]).toContain(text);
    // A word or two in a line about something else say nothing of the item.
    const short = { ...node(1), open: [{ text: 'deploy it', turn: 't1', origin: 'user' as const }], decisions: [] };
    expect(handed([short], 20, ['- Stands: reviewers deploy it by hand'])[0]).toContain('open: deploy it');
    expect(handed([short], 20, ['- Open: deploy it'])).toEqual(['- [mem_20260301_100100_00000a] done: Piece 1']);
    const dated = { ...node(1), open: [{ text: 'ask Tobias (2026-03-02).', turn: 't1', origin: 'user' as const }] };
    const told = ['- Open: ask Tobias (2026-03-02, passed)', '- Decided: use option 1'];
    expect(handed([dated], 20, told)).toEqual(['- [mem_20260301_100100_00000a] done: Piece 1']);
  });

  it('is a decision without the words of the user where both do not fit', () => {
    const decided = (text: string): MemoryNode => ({
      ...node(1),
      open: [],
      decisions: [{ text, turn: 't1', origin: 'assistant', by: 'user' }],
    });
    const words = 'can we also print the prompt here? The session id has no real value';
    const sentence = 'The overwrite warning prints the prompt instead of the session id';
    const head = '- [mem_20260301_100100_00000a] decided: ';
    expect(handed([decided(`${sentence}: “${words}”`)])).toEqual([head + sentence]);
    expect(handed([decided(`Print the prompt in the warning: “${words}”`)])[0]).toContain(words.slice(0, 20));
    expect(handed([decided(`Prompt: “${words}, and no one can tell one from another by it”`)])[0]).toContain('can we');
  });

  it('is what came of it where a model gives its subject as the title, unless that is a stranger’s', () => {
    const own = { ...node(1), author: { by: 'model', model: 'haiku' } as const, open: [], decisions: [] };
    expect(handed([own])).toEqual(['- [mem_20260301_100100_00000a] done: Piece 1 went out with version 1.']);
    expect(handed([{ ...own, origin: 'external', title_origin: 'assistant' }])).toEqual([
      '- [mem_20260301_100100_00000a] done: Piece 1',
    ]);
  });
});
