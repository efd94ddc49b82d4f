import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createSessionTitles, transcriptTitle } from '../../../../engine/transcript/session-titles.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const ID = '5f3a0000-0000-4000-8000-000000000001';
const prompt = { type: 'user', uuid: 'u1', sessionId: ID, message: { content: 'Set up staging' } };
const ai = { type: 'ai-title', aiTitle: 'Staging set-up', sessionId: ID };

const tempDir = tempDirs();

let dir: string;
let file: string;
beforeEach(async () => {
  dir = await tempDir();
  file = path.join(dir, 'projects', '-code-shop', `${ID}.jsonl`);
  mkdirSync(path.dirname(file), { recursive: true });
});

const write = (...lines: readonly object[]): void =>
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
const titles = (redact: (text: string) => string = (text) => text) => createSessionTitles(dir, redact);
const title = async (own = titles()): Promise<string | undefined> => (await own.of([ID])).get(ID);

describe("Claude Code's title of a session", () => {
  it('is the one given by hand, then that of its model, then a summary of this session', async () => {
    expect(await title()).toBeUndefined();
    write(prompt);
    expect(await title()).toBeUndefined();
    expect(await transcriptTitle(file)).toBe('Set up staging');
    write({ type: 'summary', summary: 'Other work', leafUuid: 'elsewhere' }, prompt);
    expect(await title()).toBeUndefined();
    write({ type: 'summary', summary: 'Staging, summarized', leafUuid: 'u1' }, prompt);
    expect(await title()).toBe('Staging, summarized');
    write(prompt, ai, { ...ai, aiTitle: 'Of another', sessionId: 'other' });
    expect(await title()).toBe('Staging set-up');
    write({ type: 'custom-title', customTitle: 'Mine', sessionId: ID }, prompt, ai);
    expect(await title()).toBe('Mine');
    expect(await transcriptTitle(file)).toBe('Mine');
  });

  it('comes from outside: one line of bounded length, without control characters and secrets', async () => {
    write({ ...ai, aiTitle: `Rotate\n\u001b[2Jkey \u202e hunter22 ${'and more '.repeat(4_000)}` });
    const shown = await title(titles((text) => text.replace('hunter22', '[REDACTED]')));
    expect(shown).toMatch(/^Rotate \[2Jkey \[REDACTED\] and more .*…$/);
    expect(shown?.length).toBeLessThanOrEqual(70);
    for (const wrong of [7, { a: 1 }, null]) {
      write({ ...ai, aiTitle: wrong });
      expect(await title()).toBeUndefined();
    }
  });

  it('is found at the end of a long transcript, and follows changes', async () => {
    const filler = { type: 'assistant', text: 'x'.repeat(1_000) };
    write(prompt, ...Array.from({ length: 500 }, () => filler), ai);
    const own = titles();
    expect(await title(own)).toBe('Staging set-up');
    write(prompt, ...Array.from({ length: 500 }, () => filler), { ...ai, aiTitle: 'Another' });
    expect(await title(own)).toBe('Another');
    write(prompt, ...Array.from({ length: 300 }, () => filler), ai, ...Array.from({ length: 200 }, () => filler));
    expect(await title(own)).toBe('Another');
  });
});
