import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude } from '../helpers/claude.ts';
import { type Aside, stepFiles } from '../helpers/claude-code-replies.ts';
import { type ClientRig, createClientRig, mainRequests, TOOLS } from '../helpers/claude-code-rig.ts';
import type { ServedRequest } from '../mock-anthropic/index.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-5-5', ...TOOLS];

const summarises: Aside = {
  when: 'CRITICAL: Respond with TEXT ONLY',
  answer: () => ({
    kind: 'message',
    blocks: [{ type: 'text', text: '<summary>\nSteps 1 to 6 are done.\n</summary>' }],
  }),
};

const INSTRUCTION = 'Write every note in French.';

interface Walk {
  readonly sessionId: string;
  readonly forkId: string;
}

describe.skipIf(claude === null)(`/compact and forks${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;
  let alone: Walk;
  let remembered: Walk;

  const steps = async (client: ClaudeProcess, numbers: readonly number[]): Promise<string> => {
    let id = '';
    for (const step of numbers) {
      await rig.settled();
      const answer = await client.ask(`Step ${step}: count the settings of module ${step}.`);
      expect(answer).toMatchObject({ isError: false, text: expect.stringContaining(`Step ${step} is done`) });
      id = answer.sessionId;
    }
    return id;
  };

  /** Six turns, a compaction, five more turns, and a fork with two of its own. */
  const walk = async (start: (args: readonly string[]) => ClaudeProcess): Promise<Walk> => {
    const client = start(OPUS);
    const sessionId = await steps(client, [1, 2, 3, 4, 5, 6]);
    expect(await client.ask('/compact')).toMatchObject({ isError: false });
    await steps(client, [7]);
    expect(await client.ask('/effort low')).toMatchObject({ isError: false });
    expect(await steps(client, [8, 9, 10, 11, 12])).toBe(sessionId);
    expect(await client.end()).toBe(0);
    const fork = start([...OPUS, '--resume', sessionId, '--fork-session']);
    const forkId = await steps(fork, [13, 14]);
    expect(await fork.end()).toBe(0);
    return { sessionId, forkId };
  };

  const refusals = ({ sessionId, forkId }: Walk): unknown[] =>
    rig.standin.refused
      .filter((request) => request.sessionId === sessionId || request.sessionId === forkId)
      .map((request) => request.refusal);

  beforeAll(async () => {
    const files = { ...stepFiles(14), 'CLAUDE.md': `${INSTRUCTION}\n` };
    // A node for each turn, as the model would make them.
    const env = { COMET_CC_LLM: 'local', COMET_CC_COMPACTION_MAX_L1_BUFFER: '1' };
    rig = await createClientRig({ claude: claude as string, asides: [summarises], files, env });
    alone = await walk(rig.alone);
    remembered = await walk(rig.remembered);
  });

  afterAll(async () => {
    await rig?.close();
  });

  const trimmed = (request: ServedRequest): boolean => request.bytes.includes('Earlier turns of this conversation');
  const compacted = (request: ServedRequest): boolean => request.bytes.includes('This session is being continued');

  it('keeps over a cut after it what the client says once, and the effort that the user set', () => {
    const last = mainRequests(rig.standin, remembered.sessionId).at(-1) as ServedRequest;
    const other = mainRequests(rig.standin, alone.sessionId).at(-1) as ServedRequest;
    expect(trimmed(last) && compacted(last) && !trimmed(other)).toBe(true);
    for (const text of [INSTRUCTION, 'deferred tools are now available', 'Primary working directory']) {
      expect(last.bytes.toString().split(text)).toHaveLength(2);
      expect(other.bytes.toString().split(text)).toHaveLength(2);
    }
    expect(getEffort(other)).toBeDefined();
    expect(getEffort(last)).toBe(getEffort(other));
  });

  it('trims before the compaction and again after it', () => {
    const sent = mainRequests(rig.standin, remembered.sessionId);
    expect(sent.some((request) => trimmed(request) && !compacted(request))).toBe(true);
    expect(sent.some((request) => trimmed(request) && compacted(request))).toBe(true);
  });

  it('compacts what was sent upstream, not more', () => {
    const [compaction] = rig.standin.requests.filter(
      (request) => request.class === 'compaction' && request.sessionId === remembered.sessionId,
    );
    expect(compaction?.status).toBe(200);
    expect(compaction?.bytes.toString()).toContain('Earlier turns of this conversation');
  });

  it('has nothing refused, where the client alone sends stale thinking after its compaction', () => {
    expect(refusals(alone).length).toBeGreaterThan(0);
    expect(refusals(remembered)).toEqual([]);
  });

  it('takes the request for a summary for no turn of the conversation', async () => {
    await rig.home.run(['flush']);
    const raw = JSON.stringify(await rig.home.json(['memory', 'restore', remembered.sessionId, '--json']));
    expect(raw).toContain('Step 6 is done');
    expect(raw).not.toContain('CRITICAL: Respond with TEXT ONLY');
  });

  it('gives a fork the plan of its parent', () => {
    expect(remembered.forkId).not.toBe(remembered.sessionId);
    const parent = mainRequests(rig.standin, remembered.sessionId).at(-1);
    const fork = mainRequests(rig.standin, remembered.forkId)[0];
    expect(getPreamble(parent)).not.toBeNull();
    expect(getPreamble(fork)).toBe(getPreamble(parent));
  });

  it('reports no fault of its own', () => {
    expect(rig.logged('error')).toEqual([]);
    expect(rig.strangers).toEqual([]);
  });
});

/** What applies to the newest message: a directive among the messages, or the request's own. */
function getEffort({ body }: ServedRequest): unknown {
  const messages = (body?.['messages'] ?? []) as { output_config?: unknown }[];
  const { output_config: config } = messages.findLast((message) => message.output_config !== undefined) ?? body ?? {};
  return (config as { effort?: unknown } | undefined)?.effort;
}

function getPreamble(request: ServedRequest | undefined): string | null {
  return (
    /<comet-cc-memory fence=[^>]*>\\nEarlier turns.*?<\/comet-cc-memory/.exec(request?.bytes.toString() ?? '')?.[0] ??
    null
  );
}
