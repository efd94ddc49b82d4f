/** UserPromptSubmit hook of Claude Code: what memory recalls for a prompt, where `inject.retrieval` is `hook`. */
import { ask, runHook } from './engine-client.ts';
import { lastSaid } from './transcript.ts';

/** What is asked stands at either end of a long prompt. */
const END_CHARS = 8_000;

await runHook(({ sessionId, projectDir, prompt, transcript }) => {
  const bounded =
    prompt.length <= 2 * END_CHARS ? prompt : `${prompt.slice(0, END_CHARS)}\n${prompt.slice(-END_CHARS)}`;
  if (bounded.trim() === '') return Promise.resolve('');
  const recent = lastSaid(transcript).filter((text) => text !== prompt.trim());
  return ask('hooks/prompt', { sessionId, projectDir, prompt: bounded, recent });
});
