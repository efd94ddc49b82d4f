import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CHUNK_SIZE, chunkDocument, documentDraft, documentTurn } from '../../../../memory/ingest/documents.ts';
import { readTurn } from '../../../../memory/ingest/turn-trust.ts';

const { maxChars, overlapChars } = CHUNK_SIZE;
const prose = (sentences: number, word = 'lorem') =>
  Array.from({ length: sentences }, (_, at) => `Sentence number ${at} says ${word} once more.`).join(' ');

describe('the pieces of a document', () => {
  test('cover it, keep their size, and begin with the end of the one before', () => {
    const part = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 400 }),
      fc.constantFrom(
        '\n\n',
        '\n',
        '# Title\n',
        '. ',
        ' ',
        '```\ncode\n```\n',
        'x'.repeat(2_500),
        '\u{1F600}'.repeat(700),
      ),
      fc.nat(80).map((sentences) => prose(sentences)),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        const text = parts.join('');
        const chunks = chunkDocument(text);
        let covered = 0;
        for (const [at, { from, to, text: own }] of chunks.entries()) {
          expect(own).toBe(text.slice(from, to));
          expect(own.trim()).not.toBe('');
          expect(to - from).toBeLessThanOrEqual(maxChars);
          expect(text.slice(covered, from).trim()).toBe('');
          if (at > 0) expect(covered - from).toBeLessThanOrEqual(overlapChars);
          expect(to).toBeGreaterThan(covered);
          expect(/\p{Surrogate}/u.test(own)).toBe(false);
          covered = to;
        }
        expect(text.slice(covered).trim()).toBe('');
      }),
      { numRuns: 200 },
    );
  });

  test('end behind a paragraph, else a line, a sentence, a word', () => {
    const first = (text: string): string => chunkDocument(text)[0]?.text ?? '';
    const paragraph = prose(35);
    expect(first(`${paragraph}\n\n${prose(60)}`)).toBe(`${paragraph}\n\n`);
    expect(first(`${paragraph}\n${prose(60)}`)).toBe(`${paragraph}\n`);
    expect(first(prose(90))).toMatch(/once more\. $/);
    expect(first('word '.repeat(1_000))).toMatch(/word $/);
    expect(first('x'.repeat(5_000))).toHaveLength(maxChars);
  });

  test('begin with a whole sentence, line or word of the piece before', () => {
    const [first, second] = chunkDocument(prose(90));
    expect(second?.text).toMatch(/^Sentence number/);
    expect(second?.from).toBeLessThan(first?.to as number);
  });

  test('know the headings above them, without those in code', () => {
    const text = `# Handbook\n\n${prose(30)}\n\n## Deploy\n\n\`\`\`sh\n# not a title\n\`\`\`\n\n${prose(60, 'deploy')}\n\n## Backup\n\n${prose(50)}`;
    const paths = chunkDocument(text).map(({ headings }) => headings.join(' › '));
    expect(paths[0]).toBe('Handbook');
    expect(new Set(paths)).toEqual(new Set(['Handbook', 'Handbook › Deploy', 'Handbook › Backup']));
  });
});

describe('a piece as memory', () => {
  const source = { file: '/home/dev/shop/docs/run.md', project: 'p', projectDir: '/home/dev/shop' };
  const [chunk] = chunkDocument(
    '# Deploy\n\nThe staging gateway listens on port 7411. Good luck. Never restart node b.',
  );
  if (chunk === undefined) throw new Error('a text gives at least one piece');

  test('is named by its words and its project, and has no author', () => {
    const turn = documentTurn(chunk, source, 5);
    expect(documentTurn(chunk, { ...source, file: '/elsewhere/copy.md' }, 9).turnId).toBe(turn.turnId);
    expect(documentTurn(chunk, { ...source, project: 'q' }, 5).turnId).not.toBe(turn.turnId);
    expect(readTurn(turn)).toMatchObject({ origin: 'tool', user: '', parts: [{ origin: 'tool', text: chunk.text }] });
    expect(readTurn({ ...turn, model: 'claude-opus-4-8' }).parts).toEqual([]);
  });

  test('gives its position and content', () => {
    const { summary, trigger, origin } = documentDraft(chunk, source.file, []);
    expect(summary).toMatch(/^run\.md › Deploy: /);
    expect(summary).toContain('port 7411');
    expect(summary).toContain('Never restart node b');
    expect(trigger).toMatch(/^When I need what run\.md says about .*7411/);
    expect(origin).toBe('tool');
  });
});
