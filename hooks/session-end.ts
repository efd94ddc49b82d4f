/** SessionEnd hook of Claude Code: the session is closed, and its last turns are made into memory. */
import { ask, runHook } from './engine-client.ts';

await runHook(({ sessionId }) => ask('hooks/session-end', { sessionId }));
