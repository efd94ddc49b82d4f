/** UserPromptSubmit hook of Claude Code: recalls memories for the prompt, where `inject.retrieval` is `hook`. */
import { callEngine, runHook } from './engine-client.ts';
import { readLastTexts } from './transcript.ts';

/** A long prompt asks its question at the beginning or the end. */
const END_CHARS = 8_000;

await runHook(({ sessionId, projectDir, prompt, transcript }) => {
  const bounded =
    prompt.length <= 2 * END_CHARS ? prompt : `${prompt.slice(0, END_CHARS)}\n${prompt.slice(-END_CHARS)}`;
  if (bounded.trim() === '') return Promise.resolve('');
  const recent = readLastTexts(transcript).filter((text) => text !== prompt.trim());
  return callEngine('hooks/prompt', { sessionId, projectDir, prompt: bounded, recent });
});
