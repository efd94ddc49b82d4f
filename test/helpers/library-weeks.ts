/** What a developer says in twelve simulated weeks: facts that change, and everyday prompts. */
export const WEEKS_START_MS = Date.parse('2026-03-02T09:00:00.000Z');
export const WEEK_MS = 7 * 86_400_000;

const FILLER = ['Please rename the helper in utils.ts', 'Why does the login test fail?', 'Thanks, that works'];
const WEEKS: Readonly<Record<number, readonly string[]>> = {
  0: [
    'The payments API listens on port 8080.',
    'We decided to use Redis for the session cache.',
    'Mira is our release manager.',
    'I prefer tabs over spaces.',
  ],
  2: ['Always run the migrations before the deploy.'],
  3: ['The payments API now listens on port 9090.'],
  5: ['We no longer use Redis for the session cache.', 'I am based in Hamburg.'],
  7: ['Mira is now the head of platform engineering.'],
  8: ['The payments API now listens on port 9191.'],
  9: ['We decided to use Redis for the session cache again.'],
  10: ['I am now based in Lisbon.'],
};

/** Sentences of each week, in order. */
export const SENTENCES: readonly (readonly string[])[] = Array.from({ length: 12 }, (_, nth) => [
  ...(WEEKS[nth] ?? []),
  ...FILLER.map((text) => `${text} (${nth})`),
]);
