import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, findClaude } from '../helpers/claude.ts';
import { type ClientRig, createClientRig, mainRequests, openClientTerminal } from '../helpers/claude-code-rig.ts';
import { hasTmux, type TmuxTerminal } from '../helpers/tmux.ts';

const claude = findClaude();
const missing = claude === null ? CLAUDE_MISSING : hasTmux() ? '' : 'tmux was not found; .ci/run installs it';
const PROMPT = 'We decided that the mail queue is capped at 340 letters. Tell me how to build it.';
const BEGUN = 'The queue needs a table';
const ANSWER = `${BEGUN} of letters.\n\n${'And an index on the time at which each of them is sent. '.repeat(40)}`;
const AGAIN = 'Which cap did we decide on?';

describe.skipIf(missing !== '')(`an interrupted turn${missing === '' ? '' : `: ${missing}`}`, () => {
  let rig: ClientRig;
  let terminal: TmuxTerminal;
  let isPaused = false;
  const getPause = () => ({
    afterDeltas: 8,
    get until() {
      isPaused = true;
      return new Promise(() => {});
    },
  });

  beforeAll(async () => {
    rig = await createClientRig({
      claude: claude as string,
      env: { COMET_CC_LLM: 'local' },
      asides: [
        { when: AGAIN, answer: () => ({ kind: 'message', blocks: [{ type: 'text', text: 'Of the mail queue.' }] }) },
        {
          when: PROMPT,
          answer: () => ({
            kind: 'message',
            blocks: [{ type: 'text', text: ANSWER }],
            delivery: { pause: getPause() },
          }),
        },
      ],
    });
    terminal = openClientTerminal(rig, claude as string);
  });

  afterAll(async () => {
    terminal.close();
    await rig.close();
  });

  it('is remembered in the session after /clear, with the part of its answer that arrived', async () => {
    await terminal.type('comet-cc run claude --model claude-opus-4-8');
    await terminal.shows(/for shortcuts|auto mode on/);
    await terminal.type(PROMPT);
    await expect.poll(() => isPaused).toBe(true);
    terminal.press('Escape');
    await terminal.shows(/Interrupted/);
    await terminal.type('/clear');
    const sessions = async () => (await rig.home.json(['session', 'ls', '--json'])) as { session_id: string }[];
    await terminal.type(AGAIN);
    await terminal.shows(/Of the mail queue/);
    await expect.poll(sessions).toHaveLength(2);
    const asked = mainRequests(rig.standin).at(-1);
    expect(asked?.bytes.toString()).toContain('capped at 340 letters');
    await terminal.leave();
    const left = (await sessions()).at(-1);
    const { stdout } = await rig.home.run(['memory', 'restore', left?.session_id ?? '']);
    expect(stdout).toContain(PROMPT);
    expect(stdout).toContain(BEGUN);
  });

  it('is restored once after the session was resumed', async () => {
    const sessions = (await rig.home.json(['session', 'ls', '--json'])) as { session_id: string }[];
    const left = sessions.at(-1)?.session_id ?? '';
    const restored = async () => (await rig.home.run(['memory', 'restore', left])).stdout;
    await terminal.run('clear');
    await terminal.type(`comet-cc run claude --model claude-opus-4-8 --resume ${left}`);
    await terminal.shows(/Interrupted/);
    await terminal.type(AGAIN);
    await terminal.shows(/Of the mail queue/);
    await expect.poll(restored).toContain('Of the mail queue');
    await terminal.leave();
    for (const text of [PROMPT, BEGUN]) expect((await restored()).split(text)).toHaveLength(2);
  });
});
