/** SubagentStart hook of Claude Code: gives a subagent the facts that its type is subscribed to, and others nothing. */
import { callEngine, runHook } from './engine-client.ts';

await runHook(({ sessionId, projectDir, agentType, agentId }) =>
  callEngine('hooks/subagents', { sessionId, projectDir, agentType, agentId }),
);
