import { describe, expect, test } from 'vitest';
import { readStatusline, statuslineText } from '../../../../bin/terminal/statusline.ts';

describe("Claude Code's JSON", () => {
  test('gives session and project', () => {
    const given = {
      session_id: 's1',
      cwd: '/a/b',
      model: { id: 'x' },
      workspace: { current_dir: '/a/b', project_dir: '/a' },
    };
    expect(readStatusline(JSON.stringify(given))).toEqual({ sessionId: 's1', projectDir: '/a' });
    expect(readStatusline('{"session_id":"s1","cwd":"/a/b"}')).toEqual({ sessionId: 's1', projectDir: '/a/b' });
  });

  test.each([
    '',
    'null',
    '[]',
    '{"session_id":7,"cwd":"relative"}',
    '{"session',
    `{"session_id":"${'x'.repeat(999)}"}`,
  ])('asks for nothing in particular where it is %j', (text) => {
    expect(readStatusline(text)).toEqual({});
  });
});

describe('the line', () => {
  const view = { mode: 'on', nodes: 1_204, tokens: 312_400, trimming_off: false } as const;

  test('says mode, nodes and what was saved', () => {
    expect(statuslineText(view, false)).toBe('memory on · 1,204 nodes · 312 k tokens saved');
    expect(statuslineText({ ...view, mode: 'off', nodes: 1, tokens: null }, false)).toBe('memory paused · 1 node');
    expect(statuslineText({ ...view, tokens: -900, trimming_off: true }, false)).toBe(
      'memory on · 1,204 nodes · 900 tokens lost · trimming off',
    );
    expect(statuslineText({ ...view, mode: 'private', tokens: 2_500_000 }, false)).toContain('memory private');
  });

  test('is honest without a daemon', () => {
    expect(statuslineText(null, false)).toBe('comet-cc: not running, no memory');
  });

  test('has colour only where it may', () => {
    expect(statuslineText(view, true)).toContain('\u001b[32mmemory on\u001b[39m');
    expect(statuslineText(view, false)).not.toContain('\u001b');
  });
});
