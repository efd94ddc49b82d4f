import { added, type Spread, spread } from './stats.ts';
import { open, type Sent, type Timed, timed, timedAnew, type Way } from './way.ts';

export interface Ways {
  readonly direct: Way;
  readonly bare: Way;
  readonly ours: Way;
}

export interface FirstByte {
  /** Passed on unread as it comes, read and passed on as it was, or rewritten. */
  readonly request: 'pass_through' | 'left_alone' | 'tool_loop';
  readonly connection: 'kept' | 'new';
  readonly bytes: number;
  /** Bytes that came out of comet-cc. */
  readonly sent_bytes: number;
  readonly samples: number;
  readonly direct_ms: Spread;
  /** Added to the direct connection. */
  readonly bare_added_ms: Spread;
  readonly added_ms: Spread;
}

export interface Plan {
  readonly request: FirstByte['request'];
  readonly connection: FirstByte['connection'];
  readonly samples: number;
  /** Every way gets the same request. */
  readonly make: () => Sent;
}

const WARM_UP = 15;
const NAMES = ['direct', 'bare', 'ours'] as const;

/** Goes all ways in turn with each request, so that whatever else the machine does hits them alike. */
export async function measureFirstByte(ways: Ways, plan: Plan): Promise<FirstByte> {
  const times = { direct: [] as number[], bare: [] as number[], ours: [] as number[] };
  const sockets = { direct: await open(ways.direct), bare: await open(ways.bare), ours: await open(ways.ours) };
  const once = (name: (typeof NAMES)[number], sent: Sent): Promise<Timed> =>
    plan.connection === 'kept' ? timed(sockets[name], sent) : timedAnew(ways[name], sent);
  let [bytes, sentBytes] = [0, 0];
  for (let at = -WARM_UP; at < plan.samples; at += 1) {
    const sent = plan.make();
    for (const name of NAMES) {
      const { firstByteMs, receivedBytes } = await once(name, sent);
      if (at >= 0) times[name].push(firstByteMs);
      if (name === 'ours') [bytes, sentBytes] = [sent.body.length, receivedBytes];
    }
    const isCut = sentBytes < bytes;
    if (isCut !== (plan.request === 'tool_loop')) throw new Error(`${plan.request}: ${bytes} in, ${sentBytes} out`);
  }
  for (const socket of Object.values(sockets)) socket.destroy();
  return {
    request: plan.request,
    connection: plan.connection,
    bytes,
    sent_bytes: sentBytes,
    samples: plan.samples,
    direct_ms: spread(times.direct),
    bare_added_ms: added(times.bare, times.direct),
    added_ms: added(times.ours, times.direct),
  };
}
