import { expect, it } from 'vitest';
import { stoppedLine } from '../../../../engine/api/index.ts';

const proxy = { url: 'http://127.0.0.1:8443', port: 8443 };
const line = (sessions: number, connections: number): string =>
  stoppedLine({ proxy, pass_through: { sessions, connections } });

it('says what still uses the port after a stop, and for how long it is kept where nothing does', () => {
  expect(line(1, 0)).toMatch(/^memory is off; 1 session still passes through port 8443, which closes after the last/);
  expect(line(0, 2)).toMatch(/^memory is off; 2 connections still pass through port 8443, which closes after the last/);
  expect(line(0, 0)).toMatch(/^memory is off; port 8443, used within the last hour, stays open for sessions that wait/);
  expect(stoppedLine({ proxy, pass_through: null })).toBe('comet-cc is not running; start it with: comet-cc start');
});
