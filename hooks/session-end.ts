/** SessionEnd hook of Claude Code: closes the session, and summarizes its last turns. */
import { callEngine, runHook } from './engine-client.ts';

await runHook(({ sessionId }) => callEngine('hooks/session-end', { sessionId }));
