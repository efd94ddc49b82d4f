import { expect, test } from 'vitest';
import { fullModelName } from '../../../../memory/models/openai.ts';

test.each([
  ['gpt', 'https://api.openai.com/v1', 'gpt-5'],
  ['sonnet', 'https://openrouter.ai/api/v1', '~anthropic/claude-sonnet-latest'],
  ['haiku', 'https://api.anthropic.com/v1', 'claude-haiku-4-5'],
  ['flash', 'https://generativelanguage.googleapis.com/v1beta/openai', 'gemini-2.5-flash'],
  ['sonnet', 'https://api.openai.com/v1', 'sonnet'],
  ['gpt', 'http://127.0.0.1:11434/v1', 'gpt'],
  ['llama3.2:3b', 'http://127.0.0.1:11434/v1', 'llama3.2:3b'],
  ['constructor', 'https://api.openai.com/v1', 'constructor'],
])('%s at %s is %s', (alias, endpoint, name) => {
  expect(fullModelName(alias, endpoint)).toBe(name);
});
