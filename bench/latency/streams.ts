import { setTimeout as after } from 'node:timers/promises';
import { createConversation, lone } from './conversation.ts';
import { nowMs, type Spread, spread } from './stats.ts';
import { open, post, timed, type Way } from './way.ts';

export interface Lateness extends Spread {
  readonly chunks: number;
  readonly max: number;
}

const STREAMS = 50;
const CHUNKS = 150;
/** Turns of the conversations that memory is busy with meanwhile. */
const BUSY_TURN_BYTES = 6_000;
const BETWEEN_TURNS_MS = 400;

/** How late each chunk of 50 streams at a time comes, counted from when the stand-in sent it. */
export async function measureStreams(way: Way, busy: Way | null): Promise<Lateness> {
  const late: number[] = [];
  const running = new AbortController();
  const work = busy === null ? Promise.resolve() : keepBusy(busy, running.signal);
  await Promise.all(Array.from({ length: STREAMS }, (_, at) => stream(way, at, late)));
  running.abort();
  await work;
  return { ...spread(late), chunks: late.length, max: Math.max(...late) };
}

async function stream(way: Way, at: number, late: number[]): Promise<void> {
  // Streams of a day do not start in the same millisecond.
  await after(at * 7);
  const secure = await open(way);
  const sent = lone(2_000);
  const response = await post(secure, { ...sent, headers: { ...sent.headers, 'x-bench-chunks': String(CHUNKS) } });
  for await (const chunk of response) {
    const arrivedMs = nowMs();
    for (const [, stamp] of (chunk as Buffer).toString('latin1').matchAll(/@([\d.]+)@/g)) {
      late.push(arrivedMs - Number(stamp));
    }
  }
  secure.destroy();
}

/** Two conversations that end about four turns a second: captured, redacted, compacted, indexed. */
async function keepBusy(way: Way, signal: AbortSignal): Promise<void> {
  const talk = async (): Promise<void> => {
    const secure = await open(way);
    let conversation = createConversation(BUSY_TURN_BYTES);
    for (let turn = 0; !signal.aborted; turn += 1) {
      if (turn % 20 === 19) conversation = createConversation(BUSY_TURN_BYTES);
      for (let request = 0; request < 2; request += 1) await timed(secure, conversation.next());
      await after(BETWEEN_TURNS_MS);
    }
    secure.destroy();
  };
  await Promise.all([talk(), talk()]);
}
