import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { createConversation, lone } from '../latency/conversation.ts';
import { spread } from '../latency/stats.ts';
import { open, post, timed, timedAnew, type Way } from '../latency/way.ts';

const TALKERS = 4;
const TURNS = 12;
const STREAMS = 8;
const TUNNELS = 50;
const PAUSE_MS = 300;
/** Words recur, as they do in a project: what memory knows of them is known after some hundred turns. */
const NUMBERS = 1_000;
const HELD_TUNNELS = 1_000;
const ASKED_AMONG = 21;

/**
 * A day's mix until `over`: conversations that end after twelve turns, streams read to the end and left, large bodies,
 * tunnels that say nothing.
 *
 * @returns turns that were had
 */
export async function keepBusy(way: Way, over: AbortSignal): Promise<number> {
  let turns = 0;
  const rounds = [
    ...Array.from({ length: TALKERS }, () => async () => {
      const had = await talk(way, over);
      turns += had;
    }),
    ...Array.from({ length: STREAMS }, (_, at) => () => stream(way, at % 2 === 0)),
    () => largeBody(way),
    () => idleTunnels(way),
  ];
  await Promise.all(
    rounds.map(async (round) => {
      while (!over.aborted) {
        await round();
        await after(PAUSE_MS);
      }
    }),
  );
  return turns;
}

async function talk(way: Way, over: AbortSignal): Promise<number> {
  const secure = await open(way);
  const conversation = createConversation(4_000, NUMBERS);
  let turn = 0;
  for (; turn < TURNS && !over.aborted; turn += 1) {
    for (let request = 0; request < 2; request += 1) await timed(secure, conversation.next());
    await after(PAUSE_MS);
  }
  secure.destroy();
  return turn;
}

async function stream(way: Way, toTheEnd: boolean): Promise<void> {
  const secure = await open(way);
  const sent = lone(2_000);
  const response = await post(secure, { ...sent, headers: { ...sent.headers, 'x-bench-chunks': '50' } });
  // The client that leaves is the one who hears of it.
  response.on('error', () => {});
  if (toTheEnd) for await (const _ of response);
  else await once(response, 'data');
  secure.destroy();
}

async function largeBody(way: Way): Promise<void> {
  const secure = await open(way);
  await timed(secure, lone(1_000_000));
  secure.destroy();
}

async function idleTunnels(way: Way): Promise<void> {
  await amongTunnels(way, TUNNELS, () => after(2_000));
}

/** A new request on a new connection while a thousand tunnels stand open, ms; half of them take longer. */
export async function askedAmongTunnels(way: Way): Promise<number> {
  const taken: number[] = [];
  await amongTunnels(way, HELD_TUNNELS, async () => {
    for (let at = 0; at < ASKED_AMONG; at += 1) taken.push((await timedAnew(way, lone(2_000))).firstByteMs);
  });
  return spread(taken).p50;
}

async function amongTunnels(way: Way, count: number, work: () => Promise<unknown>): Promise<void> {
  const far = net.createServer();
  const held: net.Socket[] = [];
  far.on('connection', (socket) => held.push(socket.on('error', () => {})));
  await once(far.listen(0, '127.0.0.1'), 'listening');
  const authority = `127.0.0.1:${(far.address() as net.AddressInfo).port}`;
  const tunnels: net.Socket[] = [];
  while (tunnels.length < count) {
    tunnels.push(...(await Promise.all(Array.from({ length: TUNNELS }, () => tunnel(way, authority)))));
  }
  await work();
  for (const socket of [...tunnels, ...held]) socket.destroy();
  far.close();
  await once(far, 'close');
}

/** A blind tunnel through the guard to `authority`. */
async function tunnel(way: Way, authority: string): Promise<net.Socket> {
  const socket = net.connect(way.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${way.connect ?? ''}\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`CONNECT ${authority}: ${head}`);
  return socket;
}
