import type { PastSession } from '../../engine/transcript/cost.ts';
import type { TranscriptSource } from '../../proxy/ports.ts';
import type { PastConversation, PastRequest } from '../../proxy/transcript/index.ts';
import { isPrompt } from './play.ts';

const DAY_MS = 86_400_000;
/** Requests that a fork sends. */
const FORK_REQUESTS = 6;

/** Groups of sessions; those of a group start at the same time. */
export function atOnce(sessions: readonly PastSession[], size: number): PastConversation[][] {
  const groups: PastConversation[][] = [];
  for (let at = 0; at < sessions.length; at += size) {
    const group = sessions.slice(at, at + size);
    const startMs = Math.max(...group.map(getStart));
    groups.push(group.flatMap((session) => session.map((one) => later(one, 0, startMs - getStart(session)))));
  }
  return groups;
}

export function resumedNextDay(session: PastSession): PastSession {
  const [own] = session;
  const middle = own?.requests[Math.floor(own.requests.length / 2)]?.atMs ?? 0;
  return session.map((one) =>
    later(
      one,
      one.requests.findIndex(({ atMs }) => atMs >= middle),
      DAY_MS,
    ),
  );
}

/** Only what follows the first prompt after the middle, a day later: what was before did not go through the product. */
export function joinedNextDay(session: PastSession): PastSession {
  const [own] = session;
  const middle = Math.floor((own?.requests.length ?? 0) / 2);
  const firstMs = own?.requests.find((request, at) => at >= middle && isPrompt({ request }))?.atMs;
  if (firstMs === undefined) return [];
  return session.map((one) => {
    const requests = one.requests.filter(({ atMs }) => atMs >= firstMs);
    return later({ ...one, requests }, 0, DAY_MS);
  });
}

/** What Claude Code knows of sessions that go on after a day. */
export function joinedTranscripts(sessions: readonly PastSession[]): TranscriptSource {
  const starts = new Map(sessions.map((session) => [session[0]?.sessionId, getStart(session)]));
  return { lastAnswerMs: async (sessionId) => (starts.get(sessionId) ?? DAY_MS) - DAY_MS, prompts: async () => [] };
}

/** With a second session that sends the next requests after the middle of the first. */
export function forked(session: PastSession): PastSession {
  const [own] = session;
  if (own === undefined || own.requests.length < 4) return session;
  const middle = Math.floor(own.requests.length / 2);
  const requests = own.requests.slice(middle, middle + FORK_REQUESTS).map((one) => delayed(one, 1_000));
  return [...session, { ...own, sessionId: `fork-${own.sessionId}`, requests, compactions: 0, rewinds: 0 }];
}

/** The same sessions again, under other ids, after their last request. */
export function again(sessions: readonly PastSession[]): PastSession[] {
  const times = sessions.flat().flatMap(({ requests }) => requests.map(({ atMs }) => atMs));
  const ms =
    times.reduce((most, at) => Math.max(most, at), 0) -
    times.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY) +
    DAY_MS;
  const repeat = (one: PastConversation): PastConversation => ({
    ...later(one, 0, ms),
    sessionId: `again-${one.sessionId}`,
  });
  return [...sessions, ...sessions.map((session) => session.map(repeat))];
}

function getStart([first]: PastSession): number {
  return first?.requests[0]?.atMs ?? 0;
}

/** The requests from index `from` on, `ms` later; none where `from` is negative. */
function later(conversation: PastConversation, from: number, ms: number): PastConversation {
  const requests = conversation.requests.map((one, at) => (from >= 0 && at >= from ? delayed(one, ms) : one));
  return { ...conversation, requests };
}

function delayed(request: PastRequest, ms: number): PastRequest {
  return { ...request, atMs: request.atMs + ms, answeredAtMs: request.answeredAtMs + ms };
}
