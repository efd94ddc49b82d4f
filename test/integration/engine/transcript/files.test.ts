import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openTranscripts } from '../../../../engine/transcript/files.ts';
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
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBe(Date.parse(NOON));
    write('-code-shop', answer(NOON), answer('soon'), answer(undefined), prompt, '{"type":"assistant","timest');
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBe(Date.parse(NOON));
  });

  it('is no error that Claude Code notes in place of an answer', async () => {
    write('-code-shop', answer(NOON), prompt, { ...answer('2026-11-03T09:00:01.000Z'), isApiErrorMessage: true });
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBe(Date.parse(NOON));
  });

  it('is found behind long lines, and the newest where a session was moved to another folder', async () => {
    write('-code-shop', answer(NOON), { ...prompt, message: { content: 'x'.repeat(900_000) } });
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBe(Date.parse(NOON));
    write('-code-moved', answer('2026-11-04T12:00:00.000Z'));
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBe(Date.parse('2026-11-04T12:00:00.000Z'));
  });

  it('is unknown without a transcript, without an answer in its end, and where it cannot be read', async () => {
    expect(await openTranscripts(path.join(dir, 'missing')).lastAnswerMs(ID)).toBeNull();
    write('-code-shop', prompt);
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBeNull();
    expect(await openTranscripts(dir).lastAnswerMs('../-code-shop/x')).toBeNull();
    mkdirSync(path.join(dir, 'projects', '-code-other', `${ID}.jsonl`), { recursive: true });
    expect(await openTranscripts(dir).lastAnswerMs(ID)).toBeNull();
  });
});

it('reads what was typed in a session, and when', async () => {
  const typed = (timestamp: string, content: unknown) => ({
    type: 'user',
    timestamp,
    message: { role: 'user', content },
  });
  const result = [{ type: 'tool_result', tool_use_id: 't', content: 'said by a tool' }];
  const reminded = [
    { type: 'text', text: '<system-reminder>Mind.</system-reminder>' },
    { type: 'text', text: 'Go on.' },
  ];
  const second = '2026-11-03T09:00:00.000Z';
  write('-code-shop', typed(NOON, 'Ship it.'), answer(NOON), typed(second, result), typed(second, reminded));
  expect(await openTranscripts(dir).prompts(ID)).toEqual([
    { text: 'Ship it.', atMs: Date.parse(NOON) },
    { text: 'Go on.', atMs: Date.parse(second) },
  ]);
  expect(await openTranscripts(path.join(dir, 'missing')).prompts(ID)).toEqual([]);
});
