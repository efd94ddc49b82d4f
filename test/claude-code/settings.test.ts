import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import { type ClientRig, createClientRig } from '../helpers/claude-code-rig.ts';

const claude = findClaude();

describe.skipIf(claude === null)(claude === null ? CLAUDE_MISSING : "Claude Code's own settings", () => {
  let rig: ClientRig;

  beforeAll(async () => {
    rig = await createClientRig({ claude: claude as string });
  });

  afterAll(() => rig.close());

  it('lead a client that an editor starts by itself here, until they are put back', async () => {
    const ask = async (): Promise<number> => {
      const client = rig.alone([]);
      expect(await client.ask('Which port does the queue use?')).toMatchObject({ isError: false });
      expect(await client.end()).toBe(0);
      return (await rig.status()).requests.total;
    };
    await rig.home.json(['install-ca', '--settings', '--yes', '--json']);
    const through = await ask();
    expect(through).toBeGreaterThan(0);
    await rig.home.json(['uninstall-ca', '--json']);
    expect(await ask()).toBe(through);
  });
});
