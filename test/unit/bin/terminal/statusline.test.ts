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
  const request = { received: 56_000, sent: 40_880, recalled: 'staging port' };
  const view = { mode: 'on', nodes: 1_204, trimming_off: false, request } as const;

  test('says what is kept, what was recalled and how much smaller the context is', () => {
    expect(statuslineText(view, false)).toBe('memory: 1,204 kept · recalled "staging port" · −27 % context');
    expect(statuslineText({ ...view, request: null }, false)).toBe('memory: 1,204 kept');
    expect(statuslineText({ ...view, mode: 'off', request: null }, false)).toBe('memory paused: 1,204 kept');
    expect(statuslineText({ ...view, request: { ...request, recalled: '', sent: 60_000 } }, false)).toBe(
      'memory: 1,204 kept · +7 % context',
    );
    expect(statuslineText({ ...view, trimming_off: true }, false)).toContain('trimming off, see comet-cc status');
    expect(statuslineText({ ...view, request: null, due: ['Check 47', 'Call'] }, false)).toBe(
      'memory: 1,204 kept · due: Check 47 +1',
    );
  });

  test('takes an engine of another build, and shows nothing that a terminal would obey', () => {
    const { request: _, ...older } = view;
    expect(statuslineText(older, false)).toBe('memory: 1,204 kept');
    const odd = { ...request, recalled: `a\u001b[2Jb\n${'word '.repeat(20)}` };
    expect(statuslineText({ ...view, request: odd }, false)).toMatch(/recalled "a\[2Jb word word word word word…" ·/);
  });

  test('says so without a daemon', () => {
    expect(statuslineText(null, false)).toBe('memory: off, comet-cc is not running');
  });

  test('has colour only where it may', () => {
    expect(statuslineText(view, true)).toContain('\u001b[32mmemory:\u001b[39m');
    expect(statuslineText(view, false)).not.toContain('\u001b');
  });
});
