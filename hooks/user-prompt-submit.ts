import { callEngine, NO_ANSWER, runHook } from './engine-client.ts';

/** UserPromptSubmit hook of Claude Code: reports what the user typed, so that nothing else in the request counts as the user's. */

const MOST_CHARS = 900_000;

await runHook(({ sessionId, prompt }) => {
  if (prompt.trim() === '' || prompt.length > MOST_CHARS) return Promise.resolve(NO_ANSWER);
  return callEngine('hooks/prompt', { sessionId, prompt });
});
