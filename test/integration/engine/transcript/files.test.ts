import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { lastAnswerMs } from '../../../../engine/transcript/files.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';

const ID = '5f3a0000-0000-4000-8000-000000000002';
const NOON = '2026-11-02T12:00:00.000Z';
const answer = (timestamp: unknown) => ({ type: 'assistant', timestamp, message: { role: 'assistant' } });
const prompt = { type: 'user', timestamp: '2026-11-03T09:00:00.000Z', message: { content: 'an "assistant" line?' } };

const tempDir = tempDirs();

let dir: string;
beforeEach(async () => {
  dir = await tempDir();
});

function write(folder: string, ...lines: readonly unknown[]): void {
  const file = path.join(dir, 'projects', folder, `${ID}.jsonl`);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, lines.map((line) => (typeof line === 'string' ? line : `${JSON.stringify(line)}\n`)).join(''));
}

describe('the last answer of a session', () => {
  it('is that of its transcript, whatever stands after it', async () => {
    write('-code-shop', answer('2026-11-01T12:00:00.000Z'), answer(NOON), prompt, { type: 'summary' });
    expect(await lastAnswerMs(dir, ID)).toBe(Date.parse(NOON));
    write('-code-shop', answer(NOON), answer('soon'), answer(undefined), prompt, '{"type":"assistant","timest');
    expect(await lastAnswerMs(dir, ID)).toBe(Date.parse(NOON));
  });

  it('is found behind long lines, and the newest where a session was moved to another folder', async () => {
    write('-code-shop', answer(NOON), { ...prompt, message: { content: 'x'.repeat(900_000) } });
    expect(await lastAnswerMs(dir, ID)).toBe(Date.parse(NOON));
    write('-code-moved', answer('2026-11-04T12:00:00.000Z'));
    expect(await lastAnswerMs(dir, ID)).toBe(Date.parse('2026-11-04T12:00:00.000Z'));
  });

  it('is unknown without a transcript, without an answer in its end, and where it cannot be read', async () => {
    expect(await lastAnswerMs(path.join(dir, 'missing'), ID)).toBeNull();
    write('-code-shop', prompt);
    expect(await lastAnswerMs(dir, ID)).toBeNull();
    expect(await lastAnswerMs(dir, '../-code-shop/x')).toBeNull();
    mkdirSync(path.join(dir, 'projects', '-code-other', `${ID}.jsonl`), { recursive: true });
    expect(await lastAnswerMs(dir, ID)).toBeNull();
  });
});
