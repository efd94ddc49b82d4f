import { expect, it } from 'vitest';
import { atOnce, forked, resumedNextDay } from '../../../../bench/real/schedule.ts';
import type { PastSession } from '../../../../engine/transcript/cost.ts';
import { pastConversation } from '../../../helpers/past-conversations.ts';

const TURNS = Array.from({ length: 6 }, () => ({ promptTokens: 10, rounds: [], pauseMs: 10_000 }));
const SESSION = [pastConversation(TURNS)];
const DAY_MS = 86_400_000;

const times = (session: PastSession): number[] => session.flatMap(({ requests }) => requests.map(({ atMs }) => atMs));

it('starts the sessions of a group at the same time', () => {
  const later = [{ ...pastConversation(TURNS), sessionId: 's2' }].map((one) => ({
    ...one,
    requests: one.requests.map((request) => ({ ...request, atMs: request.atMs + DAY_MS })),
  }));
  const [group = []] = atOnce([SESSION, later], 2);
  expect(group.map(({ sessionId }) => sessionId)).toEqual(['s1', 's2']);
  expect(times(group.slice(0, 1))).toEqual(times(group.slice(1)));
  expect(atOnce([SESSION, later], 1)).toEqual([SESSION, later]);
});

it('sends the second half a day later', () => {
  const moved = times(resumedNextDay(SESSION)).map((atMs, at) => atMs - (times(SESSION)[at] as number));
  expect(moved).toEqual([0, 0, 0, DAY_MS, DAY_MS, DAY_MS]);
});

it('forks a session in its middle, with the messages before', () => {
  const [own, fork] = forked(SESSION);
  expect(own).toBe(SESSION[0]);
  expect(fork?.sessionId).toBe('fork-s1');
  expect(fork?.requests[0]?.messages).toBe(own?.requests[3]?.messages);
});
