import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import { stepFile, stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';
import { isTrueOfSent } from '../helpers/receipt-proof.ts';
import { type Answer, newestPrompt, type ServedRequest } from '../mock-anthropic/index.ts';

const claude = findClaude();
const FILES = 24;
const PROMPT = 'Read every module one after the other and keep in mind that Halvorsen listens on port 7423.';
const AGAIN = 'Which number stands last in module-1.ts?';

describe.skipIf(claude === null)(
  `one long tool loop of Claude Code${claude === null ? `: ${CLAUDE_MISSING}` : ''}`,
  () => {
    let rig: ClientRig;

    /** Goes on from the file that was read last: how many rounds there were is not to be seen in what was trimmed. */
    const readOn = ({ body }: ServedRequest): Answer => {
      const messages = (body?.['messages'] ?? []) as { role: string }[];
      const newest = JSON.stringify(messages.findLast(({ role }) => role === 'user'));
      const next = Number(/setting(\d+)x0 = /.exec(newest)?.[1] ?? 0) + 1;
      const thought = { type: 'thinking', thinking: `On to number ${next}.` } as const;
      if (next > FILES) return { kind: 'message', blocks: [thought, { type: 'text', text: 'All modules are read.' }] };
      return { kind: 'message', blocks: [thought, { type: 'tool_use', name: 'Read', input: fileAt(next) }] };
    };

    const fileAt = (step: number) => ({ file_path: `${rig.project}/${stepFile(step)}` });

    /** Reads a file that it has read before; where that is refused, does as our preamble says. */
    const readAgain = ({ body, bytes }: ServedRequest): Answer => {
      const newest = JSON.stringify(((body?.['messages'] ?? []) as unknown[]).at(-1));
      if (newest.includes('setting1x59 = '))
        return { kind: 'message', blocks: [{ type: 'text', text: 'It is 1059.' }] };
      const told = newest.includes('unchanged') && bytes.includes('`cat` the file');
      const bash = { command: `cat ${stepFile(1)}`, description: 'Show the file' };
      return {
        kind: 'message',
        blocks: [
          told ? { type: 'tool_use', name: 'Bash', input: bash } : { type: 'tool_use', name: 'Read', input: fileAt(1) },
        ],
      };
    };

    beforeAll(async () => {
      const env = {
        COMET_CC_TRIM_KEEP_ROUNDS: '4',
        COMET_CC_TRIM_KEEP_ROUND_TOKENS: '1000',
        COMET_CC_TRIM_TARGET_TOKENS: '20000',
      };
      const answer = (request: ServedRequest): Answer =>
        newestPrompt(request.body ?? {}).includes(AGAIN) ? readAgain(request) : readOn(request);
      const asides = ['"tool_result"', PROMPT, AGAIN].map((when) => ({ when, answer }));
      rig = await createClientRig({ claude: claude as string, asides, files: stepFiles(FILES), env });
    });

    afterAll(async () => {
      await rig?.close();
    });

    it('loses its oldest rounds, keeps its prompt, ends as it would have, and can look at again what went', async () => {
      const client = rig.remembered([...TOOLS, '--model', 'claude-opus-5-5']);
      const answer = await client.ask(PROMPT);
      expect(answer).toMatchObject({ isError: false, text: 'All modules are read.' });
      // Claude Code refuses to read a file twice, and points to a result that upstream is no longer sent.
      expect(await client.ask(AGAIN)).toMatchObject({ isError: false, text: 'It is 1059.' });
      expect(await client.end()).toBe(0);

      expect(rig.standin.refused.map(({ refusal }) => refusal)).toEqual([]);
      const main = mainRequests(rig.standin, answer.sessionId);
      expect(main.length).toBeGreaterThan(FILES);
      const last = main[FILES] as ServedRequest;
      expect(newestPrompt(last.body ?? {})).toContain('Halvorsen listens on port 7423');
      const sent = JSON.stringify(last.body?.['messages']);
      expect(sent).not.toContain('export const setting1x59 = ');
      expect(sent).toContain(`export const setting${FILES}x59 = `);

      const receipts = (await rig.receipts()).filter(({ session_id }) => session_id === answer.sessionId);
      expect(receipts.some(({ economics }) => economics.decision.startsWith('cut in a tool loop'))).toBe(true);
      for (const receipt of receipts.filter(({ edits }) => edits.length > 0)) {
        expect(main.some(({ bytes }) => isTrueOfSent(receipt, bytes))).toBe(true);
      }
    });
  },
);
