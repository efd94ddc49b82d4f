import { openContext, type ShareParts, type ShareState, unread } from './parts.ts';
import { createPull } from './reader.ts';
import { createWriter } from './writer.ts';

export type Share = Awaited<ReturnType<typeof openShare>>;

/** The caller takes one step at a time. Each may be interrupted anywhere and repeated. */
export async function openShare(parts: ShareParts, state: ShareState) {
  const context = await openContext(parts, state);
  const { pending, push } = createWriter(context);
  return {
    state: context.state,
    /** What a push would send; changes nothing. */
    preview: pending,
    /** Returns how many rows were sent. */
    push,
    pull: createPull(context),
    /** Reads the log of this machine again, because what its nodes count as has changed. */
    async readAgain(machine: string): Promise<void> {
      const { known, peers } = context.state();
      const peer = peers[machine];
      if (peer === undefined) return;
      const changed = Object.entries(known).map(([id, each]) =>
        each.owner === machine ? [id, { ...each, version: 0, digest: '' }] : [id, each],
      );
      await context.keep({ known: Object.fromEntries(changed), peers: { ...peers, ...unread({ [machine]: peer }) } });
    },
  };
}
