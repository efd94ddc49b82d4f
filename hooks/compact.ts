/** PreCompact and PostCompact hook of Claude Code: summarizes what Claude Code is about to forget. */
import { callEngine, runHook } from './engine-client.ts';

await runHook(({ sessionId, event }) => callEngine('hooks/compact', { sessionId, done: event === 'PostCompact' }));
