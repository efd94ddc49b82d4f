import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude, OLDER_VERSION } from '../helpers/claude.ts';
import { stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';
import type { ServedRequest } from '../mock-anthropic/index.ts';

const claude = findClaude();
const older = findClaude(OLDER_VERSION);
const OPUS = 'claude-opus-5-5';
const HOUR_MS = 3_600_000;

/** Moves what the client noted of a session into the past. */
function age(user: string, id: string, ms: number): void {
  const projects = path.join(user, '.claude', 'projects');
  const files = readdirSync(projects).map((folder) => path.join(projects, folder, `${id}.jsonl`));
  for (const file of files.filter((each) => existsSync(each))) {
    const earlier = (_: string, time: string): string =>
      `"timestamp":"${new Date(Date.parse(time) - ms).toISOString()}"`;
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/"timestamp":"([^"]+)"/g, earlier));
  }
}

describe.skipIf(claude === null)(
  `resumes with another model or version, or past us for a while${claude === null ? `: ${CLAUDE_MISSING}` : ''}`,
  () => {
    let rig: ClientRig;

    const steps = async (client: ClaudeProcess, numbers: readonly number[]): Promise<string> => {
      let id = '';
      for (const step of numbers) {
        await rig.settled();
        const answer = await client.ask(`Step ${step}: count the settings of module ${step}.`);
        expect(answer).toMatchObject({ isError: false, text: expect.stringContaining(`Step ${step} is done`) });
        id = answer.sessionId;
      }
      expect(await client.end()).toBe(0);
      return id;
    };

    const resumed = (id: string, model: string): readonly string[] => [...TOOLS, '--model', model, '--resume', id];
    const isCut = ({ bytes }: ServedRequest): boolean => bytes.includes('Earlier turns of this conversation');
    const carried = (request: ServedRequest): boolean => request.bytes.includes('comet-cc');
    /** From the first cut on, no request has the whole history, whatever form it comes in. */
    const expectCutOnwards = (id: string): void => {
      const requests = mainRequests(rig.standin, id);
      const first = requests.findIndex(isCut);
      expect(first).toBeGreaterThan(0);
      expect(requests.slice(first).map(isCut)).not.toContain(false);
    };
    const getRefused = (id: string): ServedRequest[] =>
      rig.standin.refused.filter((request) => request.sessionId === id);

    beforeAll(async () => {
      // A node for each turn, as the model would make them.
      const env = { COMET_CC_LLM: 'local', COMET_CC_COMPACTION_MAX_L1_BUFFER: '1' };
      rig = await createClientRig({ claude: claude as string, files: stepFiles(14), env });
    });

    afterAll(async () => {
      await rig?.close();
    });

    it('is refused nothing when the model changes and changes back, and trims on', async () => {
      const id = await steps(rig.remembered([...TOOLS, '--model', OPUS]), [1, 2, 3, 4, 5, 6]);
      expect(await steps(rig.remembered(resumed(id, 'sonnet')), [7])).toBe(id);
      expect(await steps(rig.remembered(resumed(id, 'claude-haiku-4-5')), [8])).toBe(id);
      expect(await steps(rig.remembered(resumed(id, OPUS)), [9, 10, 11, 12, 13, 14])).toBe(id);
      expect(getRefused(id).map(({ refusal }) => refusal)).toEqual([]);
      expectCutOnwards(id);
    });

    it('is refused nothing more when it went past us for a turn and comes back', async () => {
      const id = await steps(rig.remembered([...TOOLS, '--model', OPUS]), [1, 2, 3, 4, 5, 6]);
      await steps(rig.alone(resumed(id, OPUS)), [7]);
      const before = getRefused(id).length;
      await steps(rig.remembered(resumed(id, OPUS)), [8, 9]);
      expect(
        getRefused(id)
          .slice(before)
          .map(({ refusal }) => refusal),
      ).toEqual([]);
      expect(mainRequests(rig.standin, id).slice(-2).every(carried)).toBe(true);
    });

    it('is cut with its first request when it was begun without us and resumed later', async () => {
      const id = await steps(rig.alone([...TOOLS, '--model', OPUS]), [1, 2, 3, 4, 5, 6]);
      age(rig.home.user, id, 2 * HOUR_MS);
      await steps(rig.remembered(resumed(id, OPUS)), [7, 8]);
      const requests = mainRequests(rig.standin, id);
      const first = requests.findIndex(carried);
      expect(requests.slice(first).map(isCut)).not.toContain(false);
      expect(requests[first]?.bytes.length).toBeLessThan((requests[first - 1]?.bytes.length ?? 0) * 0.9);
      expect(getRefused(id)).toEqual([]);
      await rig.home.run(['flush']);
      const nodes = (await rig.nodes()).filter((node) => node.session_id === id && node.depth_level === 1);
      const past = nodes.filter((node) => Date.parse(node.valid_from) < Date.now() - HOUR_MS);
      // The first turn is that of the sessions above.
      expect(past.length).toBeGreaterThanOrEqual(5);
      expect(new Set(past.map((node) => node.valid_from)).size).toBe(past.length);
    });

    it.skipIf(older === null)(
      'is refused nothing and remembers each turn once when the client is updated',
      async () => {
        const id = await steps(rig.remembered([...TOOLS, '--model', OPUS], older as string), [1, 2, 3, 4, 5, 6]);
        await steps(rig.remembered(resumed(id, OPUS)), [7, 8, 9]);
        expect(getRefused(id)).toEqual([]);
        expectCutOnwards(id);
        await rig.home.run(['flush']);
        const nodes = (await rig.nodes()).filter((node) => node.session_id === id && node.depth_level === 1);
        const told = nodes.flatMap(({ summary }) => summary.match(/said: Step \d|user says: Step \d/g) ?? []);
        expect(nodes.flatMap(({ turns }) => turns)).toHaveLength(9);
        expect(new Set(told).size).toBe(told.length);
      },
    );

    it('reports no fault of its own', () => {
      expect(rig.logged('error')).toEqual([]);
      expect(rig.strangers).toEqual([]);
    });
  },
);
