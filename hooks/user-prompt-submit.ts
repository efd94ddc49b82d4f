/**
 * UserPromptSubmit hook of Claude Code: reports what the user typed, so that nothing else in the request counts as the
 * user's, and recalls memories for it where `inject.retrieval` is `hook`.
 */
import { callEngine, NO_ANSWER, runHook } from './engine-client.ts';
import { readLastTexts } from './transcript.ts';

const MOST_CHARS = 900_000;

await runHook(({ sessionId, projectDir, prompt, transcript }) => {
  if (prompt.trim() === '' || prompt.length > MOST_CHARS) return Promise.resolve(NO_ANSWER);
  const recent = readLastTexts(transcript).filter((text) => text !== prompt.trim());
  return callEngine('hooks/prompt', { sessionId, projectDir, prompt, recent });
});
