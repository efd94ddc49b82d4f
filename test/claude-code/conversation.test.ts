import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writtenBy } from '../../memory/library.ts';
import { CLAUDE_MISSING, findClaude, OLDER_VERSION } from '../helpers/claude.ts';
import { lookUp, stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';
import { isTrueOfSent } from '../helpers/receipt-proof.ts';

const CLIENTS = [
  ['Claude Code', findClaude()],
  [`Claude Code ${OLDER_VERSION}`, findClaude(OLDER_VERSION)],
] as const;
const PORT = 'the staging database of Halvorsen listens on port 7423';
const QUESTION = 'Where does the staging database of Halvorsen listen?';

const prompt = (step: number): string =>
  `Step ${step}: count the settings of module ${step}.${step === 2 ? ` Keep in mind: ${PORT}.` : ''}`;

/** Whether the newest request of the session still holds what a tool read in that step. */
const holds = (rig: ClientRig, sessionId: string, step: number): boolean => {
  const messages = mainRequests(rig.standin, sessionId).at(-1)?.body?.['messages'] as Record<string, unknown>[];
  const results = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as { type: string }[]) : []));
  const read = results.filter(({ type }) => type === 'tool_result').map((result) => JSON.stringify(result));
  return read.some((text) => text.includes(`export const setting${step}x59 = `));
};

describe.each(CLIENTS)('%s through comet-cc run', (_, claude) => {
  describe.skipIf(claude === null)(claude === null ? CLAUDE_MISSING : 'a conversation', () => {
    let rig: ClientRig;
    let sessionId = '';

    const work = async (args: readonly string[], steps: readonly number[]): Promise<string> => {
      const client = rig.remembered([...TOOLS, ...args]);
      let id = '';
      for (const step of steps) {
        await rig.settled();
        const answer = await client.ask(prompt(step));
        expect(answer).toMatchObject({ isError: false, text: expect.stringContaining(`Step ${step} is done`) });
        id = answer.sessionId;
      }
      expect(await client.end()).toBe(0);
      return id;
    };

    beforeAll(async () => {
      const asides = [lookUp(QUESTION, /staging database of Halvorsen listens on port (\d+)/)];
      rig = await createClientRig({ claude: claude as string, asides, files: stepFiles(13) });
    });

    afterAll(async () => {
      await rig?.close();
    });

    it('works through 13 turns with tools and a resume on a model that binds its thinking; the old turns are cut', async () => {
      sessionId = await work(['--model', 'claude-opus-5-5'], [1, 2, 3, 4, 5, 6, 7]);
      expect(holds(rig, sessionId, 1)).toBe(false);
      expect(await work(['--model', 'claude-opus-5-5', '--resume', sessionId], [8, 9, 10, 11, 12, 13])).toBe(sessionId);

      expect(rig.standin.refused.map(({ refusal }) => refusal)).toEqual([]);
      expect(holds(rig, sessionId, 8)).toBe(false);
      expect(holds(rig, sessionId, 13)).toBe(true);
      const last = mainRequests(rig.standin, sessionId).at(-1);
      expect(last?.bytes.toString()).toContain('<comet-cc-memory');
      expect(JSON.stringify(last?.body?.['messages'])).toContain('"thinking"');
      const { tokens } = await rig.status();
      expect(tokens.sent).toBeLessThan(tokens.original);
    });

    it('has a receipt for each request that is true of what went upstream', async () => {
      const receipts = await rig.receipts();
      const main = mainRequests(rig.standin, sessionId);
      const own = receipts.filter(({ session_id, edits }) => session_id === sessionId && edits.length > 0);
      expect(own.length).toBeGreaterThan(10);
      for (const receipt of own) expect(main.some(({ bytes }) => isTrueOfSent(receipt, bytes))).toBe(true);
      expect(own.some(({ dropped }) => dropped.length > 0)).toBe(true);
      expect(own.every(({ economics }) => economics.billed !== null)).toBe(true);
    });

    it('has every node written by claude -p once all is flushed, and the cut turns verbatim', async () => {
      expect(await rig.home.run(['flush'])).toMatchObject({ code: 0 });
      // What single calls did is copied, not written.
      const nodes = (await rig.nodes()).filter((node) => writtenBy(node) !== 'bundle');
      expect([...new Set(nodes.map((node) => writtenBy(node)))]).toEqual(['claude']);
      const turns = nodes.filter((node) => node.session_id === sessionId).flatMap((node) => node.turns);
      expect(new Set(turns).size).toBe(13);
      const raw = JSON.stringify(await rig.home.json(['memory', 'restore', sessionId, '--json']));
      expect(raw).toContain('export const setting1x59 = 1059;');
      expect((await rig.status()).llm).toMatchObject({ backend: 'claude', last_error: '' });
      expect(rig.standin.requests.filter((request) => request.class === 'structured').length).toBeGreaterThan(1);
    });

    it('answers in a new session what was said in an old one, which the client alone does not know', async () => {
      const alone = rig.alone(['--model', 'claude-opus-5-5']);
      expect(await alone.ask(QUESTION)).toMatchObject({ text: 'I do not know.' });
      await alone.end();
      const client = rig.remembered(['--model', 'claude-opus-5-5']);
      const answer = await client.ask(QUESTION);
      await client.end();
      expect(answer.text).toBe('It is 7423.');
      expect(answer.sessionId).not.toBe(sessionId);
    });

    it.each(['sonnet', 'claude-haiku-4-5'])('cuts a conversation on %s too', async (model) => {
      // A node for each turn, as the model made them above, without a client for each.
      const env = { COMET_CC_LLM: 'local', COMET_CC_COMPACTION_MAX_L1_BUFFER: '1' };
      if ((await rig.status()).llm.backend !== 'local') await rig.home.json(['restart', '--json'], { env });
      const id = await work(['--model', model], [1, 2, 3, 4, 5, 6]);
      expect(rig.standin.refused.map(({ refusal }) => refusal)).toEqual([]);
      expect(holds(rig, id, 1)).toBe(false);
      const last = mainRequests(rig.standin, id).at(-1);
      expect(last?.bytes.toString()).toContain('<comet-cc-memory');
      expect(last?.body?.['thinking']).toMatchObject({ type: model === 'sonnet' ? 'adaptive' : 'enabled' });
    });

    it('reaches nothing but the API, and nothing goes wrong unseen', () => {
      expect(rig.strangers).toEqual([]);
      expect(rig.logged('error')).toEqual([]);
      expect(rig.standin.refused).toEqual([]);
    });
  });
});
