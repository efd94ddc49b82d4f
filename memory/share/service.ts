import { createMutex } from '../../common/async.ts';
import { openContext, type ShareParts } from './parts.ts';
import { createReader } from './reader.ts';
import { createWriter } from './writer.ts';

/** One step at a time. Each may be interrupted anywhere and repeated. */
export async function openShare(parts: ShareParts) {
  const context = await openContext(parts);
  const writer = createWriter(context);
  const { pull } = createReader(context);
  const lock = createMutex();
  return {
    state: context.state,
    /** What a push would send; changes nothing. */
    preview: () => lock(writer.pending),
    /** Returns how many rows were sent. */
    push: () => lock(writer.push),
    pull: () => lock(pull),
    /** The user removed these nodes: the next push removes them everywhere. */
    remove: (nodeIds: readonly string[]) =>
      lock(() => context.keep({ removed: [...new Set([...context.state().removed, ...nodeIds])] })),
    /** Takes the machine's log off the bus; what was received stays. */
    leave: () => lock(() => parts.bus.drop(context.state().machine)),
  };
}
