import { expect, it } from 'vitest';
import { Config } from '../../../../common/config.ts';
import { silentLog } from '../../../../common/log.ts';
import { createLlmClient } from '../../../../memory/models/client.ts';

it('counts the tokens of merges apart, failed attempts too', async () => {
  let attempts = 0;
  const client = createLlmClient({
    ...{ name: 'scripted', provider: 'scripted', models: Config.parse({}).models },
    ...{ redact: (text) => text, now: () => 0, log: silentLog },
    attempt: async () => {
      attempts += 1;
      const value = attempts === 1 ? {} : { fits: false, summary: '', trigger: '' };
      return { kind: 'answer', value, tokens: 10, costUsd: 0 };
    },
  });
  const { signal } = new AbortController();
  await client.merge?.({ kind: 'merge', notes: [] }, signal);
  const sentence = { sentences: ['It fits.'] };
  await client.ask({ system: '', user: '', schema: {}, parse: () => sentence }, signal);
  expect(client.health()).toMatchObject({ mergeTokens: 20, tokensToday: 30 });
});
