import { createHash } from 'node:crypto';
import type { Receipt } from '../../proxy/index.ts';
import { applyEdits, scanBody, scanObject } from '../../proxy/index.ts';
import type { ServedRequest } from '../../test/mock-anthropic/index.ts';
import type { Stage } from './harness.ts';
import type { StorySession } from './story.ts';

/** Holds every receipt against what left the client and what arrived upstream. */
export function checkReceipts(
  receipts: readonly Receipt[],
  bodies: readonly Buffer[],
  served: readonly Pick<ServedRequest, 'bytes'>[],
): { checked: number; true: number } {
  const received = new Map(bodies.map((body) => [sha256(body), body]));
  const arrived = new Set(served.map(({ bytes }) => sha256(bytes)));
  const isTrue = (receipt: Receipt): boolean => {
    const body = received.get(receipt.received.sha256);
    if (body === undefined) return false;
    const edits = receipt.edits.map(({ start, end, text }) => ({ start, end, bytes: Buffer.from(text) }));
    const sent = sha256(applyEdits(body, edits));
    return sent === receipt.sent.sha256 && arrived.has(sent);
  };
  return { checked: receipts.length, true: receipts.filter(isTrue).length };
}

/** Holds the restored messages of each session against every form in which the client sent them. */
export async function checkRestored(
  stage: Pick<Stage, 'engine'>,
  story: readonly StorySession[],
  bodies: readonly Buffer[],
): Promise<{ messages: number; equal: number }> {
  const sent = new Set(bodies.flatMap(contentDigests));
  let messages = 0;
  let equal = 0;
  for (const session of story) {
    const last = bodies.findLast((body) => body.includes(session.id));
    // The last answer was not sent any more.
    const count = last === undefined ? 0 : contentDigests(last).length;
    const restored = await stage.engine.call('sessions/restore', { sessionId: session.id });
    messages += count;
    equal += restored.slice(0, count).filter((message) => sent.has(message.sha256)).length;
  }
  return { messages, equal };
}

function contentDigests(body: Buffer): string[] {
  return (scanBody(body)?.messages ?? []).flatMap((at) => {
    const content = scanObject(body, at.start)?.values.get('content');
    return content === undefined ? [] : [sha256(body.subarray(content.start, content.end))];
  });
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
