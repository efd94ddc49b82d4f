import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLAUDE_MISSING, type ClaudeProcess, findClaude } from '../helpers/claude.ts';
import { type ClientRig, createClientRig, mainRequests } from '../helpers/claude-code-rig.ts';

const claude = findClaude();
const OPUS = ['--model', 'claude-opus-4-8'];
const PROMPTS = [
  'The invoices are rounded to the nearest cent.',
  'Only the total of each is rounded.',
  'How are the invoices rounded?',
];

/** Without these Claude Code ignores what the server switches on. */
const LISTENS_TO_SERVER = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '',
  DISABLE_TELEMETRY: '',
  DISABLE_ERROR_REPORTING: '',
};

describe.skipIf(claude === null)(`message threads${claude === null ? `: ${CLAUDE_MISSING}` : ''}`, () => {
  let rig: ClientRig;

  beforeAll(async () => {
    rig = await createClientRig({ claude: claude as string, env: { COMET_CC_LLM: 'local', ...LISTENS_TO_SERVER } });
    // What Claude Code keeps of the server's switches.
    const flags = { cachedGrowthBookFeatures: { tengu_curious_tower: true } };
    writeFileSync(path.join(rig.home.user, '.claude.json'), JSON.stringify(flags));
  });

  afterAll(async () => {
    await rig?.close();
  });

  /** The kind of thread of each request, `whole` where there is none, with what the API refused. */
  const play = async (session: ClaudeProcess): Promise<readonly string[]> => {
    let id = '';
    for (const prompt of PROMPTS) {
      const { sessionId, isError } = await session.ask(prompt);
      expect(isError).toBe(false);
      id = sessionId;
    }
    expect(await session.end()).toBe(0);
    return mainRequests(rig.standin, id).map(({ body, refusal }) => {
      const { type = 'whole' } = Object(body?.['thread']) as { type?: string };
      return refusal === null ? type : `${type}: ${refusal.details?.['error_code'] ?? refusal.message}`;
    });
  };

  it('are what Claude Code alone uses where the server switches them on', async () => {
    expect(await play(rig.alone(OPUS))).toEqual(['create', 'continue', 'continue']);
  });

  it('are off through comet-cc, so that each request has the whole conversation', async () => {
    expect(await play(rig.remembered(OPUS))).toEqual(['whole', 'whole', 'whole']);
  });

  it('of a session with memory are refused, where the settings switch them on, and sent whole', async () => {
    const settings = path.join(rig.home.user, '.claude', 'settings.json');
    writeFileSync(settings, JSON.stringify({ env: { CLAUDE_CODE_TETHER_LIVE: '1' } }));
    const again = ['continue: thread_fingerprint_mismatch', 'create'];
    expect(await play(rig.remembered(OPUS))).toEqual(['create', ...again, ...again]);
  });
});
