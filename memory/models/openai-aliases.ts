/** Short names for what an endpoint calls its models, by host. Any other name goes out as it stands. */
const ALIASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'api.openai.com': { gpt: 'gpt-5', 'gpt-mini': 'gpt-5-mini', 'gpt-nano': 'gpt-5-nano' },
  'openrouter.ai': {
    gpt: 'openai/gpt-5',
    'gpt-mini': 'openai/gpt-5-mini',
    opus: '~anthropic/claude-opus-latest',
    sonnet: '~anthropic/claude-sonnet-latest',
    haiku: '~anthropic/claude-haiku-latest',
    gemini: 'google/gemini-2.5-pro',
    'gemini-flash': 'google/gemini-2.5-flash',
  },
  'api.anthropic.com': { opus: 'claude-opus-5', sonnet: 'claude-sonnet-5', haiku: 'claude-haiku-4-5' },
};

/** The full name of `model` at this endpoint. */
export function fullModelName(model: string, baseUrl: string): string {
  const aliases = ALIASES[new URL(baseUrl).hostname] ?? {};
  return Object.hasOwn(aliases, model) ? (aliases[model] as string) : model;
}
