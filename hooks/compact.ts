/** PreCompact and PostCompact hook of Claude Code: what it is about to forget is made into memory. */
import { ask, runHook } from './engine-client.ts';

await runHook(({ sessionId, event }) => ask('hooks/compact', { sessionId, done: event === 'PostCompact' }));
