import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { isCleanOrigin } from '../../../../common/turn.ts';
import { createLocalModel } from '../../../../memory/compaction/rules-model.ts';
import type { Memory, MemoryLine } from '../../../../memory/index.ts';
import { renderPreamble, renderRetrieval, renderSystemBlock } from '../../../../proxy/rewrite/render.ts';
import { createRedactor } from '../../../../redact/index.ts';
import { type DiskRig, openOnDisk } from '../../../helpers/disk-rig.ts';
import { CARRIERS, type Payload, poisonedTurn, poisonPayloads } from '../../../helpers/prompt-injection-samples.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { getTurn, message, talk, toolRound } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const open: DiskRig[] = [];
afterEach(async () => {
  for (const { memory } of open.splice(0)) await memory.maintenance.close();
});

async function remember(): Promise<Memory> {
  const redactor = createRedactor({ markKey: Buffer.alloc(32, 7) });
  const rig = await openOnDisk(await tempDir(), { llm: 'local', local: createLocalModel(), redactor, watch: null });
  open.push(rig);
  return rig.memory;
}

const getLine = ({ nodeId, text, origin }: MemoryLine) => ({ nodeId, text, clean: isCleanOrigin(origin) });

/** Everything that memory would put into a conversation for this prompt. */
async function channels(memory: Memory, prompt: string, sessionId: string) {
  const request = { sessionId, projectDir: '/home/dev/shop', prompt, recent: [] };
  const hits = await memory.recall.recall(
    { ...request, visibleTurns: new Set(), shown: new Set() },
    new AbortController().signal,
  );
  const found = await memory.recall.search(prompt, { top: 20, projectDir: '/home/dev/shop' });
  const lines = [...hits, ...found].map(({ line }) => getLine(line));
  const { brief, lines: always } = await memory.recall.sessionContext(sessionId, '/home/dev/shop');
  const fence = randomBytes(8).toString('hex');
  const system = renderSystemBlock({ brief, lines: always.map(getLine), budgetTokens: 100_000 });
  const budget = { budgetTokens: 100_000, fence, anchor: 'a', takesSystemMessages: true };
  const injected = renderRetrieval(lines, { ...budget, mode: 'auto' });
  const inField = renderSystemBlock({
    brief: [],
    lines: [],
    budgetTokens: 0,
    recalled: { lines, budgetTokens: 100_000 },
  });
  const kept = memory.library.list({ all: true, limit: 200 }).map(({ node_id }) => node_id);
  const preamble = renderPreamble(
    memory.recall.lines(kept).map(getLine),
    { budgetTokens: 100_000, absorbedTokens: 0 },
    fence,
  );
  return {
    system: [
      system?.text ?? '',
      inField?.text ?? '',
      ...injected.filter(({ channel }) => channel === 'system').map(({ text }) => text),
    ],
    blocks: [preamble.text, ...injected.filter(({ channel }) => channel === 'block').map(({ text }) => text)],
    fence,
  };
}

/** The fence opens in the first line and closes in the last; nothing between them can be taken for markup. */
function expectInside(block: string, fence: string): void {
  const lines = block.split('\n');
  expect(lines[0]).toBe(`<comet-cc-memory fence="${fence}">`);
  expect(lines.at(-1)).toBe(`</comet-cc-memory fence="${fence}">`);
  const inner = lines.slice(1, -1);
  for (const line of inner) {
    expect(line).not.toMatch(/<[/!?]?[\p{L}_]|comet-cc-memory|\p{Cf}|[\u2028\u2029]/u);
  }
  for (const line of inner.slice(1)) expect(line).toMatch(/^- \[mem_\d{8}_\d{6}_[0-9a-f]{6}\] /);
}

const heldBy = (texts: readonly string[], payloads: readonly Payload[]): string[] => {
  const all = texts.join('\n').toLowerCase();
  return payloads.filter(({ marker }) => all.includes(marker)).map(({ text }) => text);
};

describe('200 payloads from the web, files, tools and MCP servers', () => {
  it.each(CARRIERS)(
    '%s: none is recalled unasked or in a system message, and none escapes its fence',
    async (carrier) => {
      const memory = await remember();
      const payloads = poisonPayloads(200, CARRIERS.indexOf(carrier) + 71);
      expect(new Set(payloads.map(({ marker }) => marker)).size).toBe(200);
      const getSession = (at: number): string => `s${Math.floor(at / 20)}`;
      memory.capture.captureTurns(payloads.map((payload, at) => poisonedTurn(payload, carrier, at, getSession(at))));
      memory.capture.captureTurns([
        talk('We decided to deploy on Tuesdays.', 'Noted: Tuesdays.', { sessionId: 's-clean' }),
      ]);
      expect(await memory.maintenance.flush(100_000)).toBe(true);

      const nodes = memory.library.list({ all: true, limit: 10_000 });
      expect(nodes.length).toBeGreaterThan(20);
      const passive = nodes.filter((node) => node.recall_mode !== 'active' || node.pinned_from !== undefined);
      expect(
        heldBy(
          passive.map((node) => JSON.stringify(node)),
          payloads,
        ),
      ).toEqual([]);
      const kept = heldBy(
        nodes.map((node) => JSON.stringify(node)),
        payloads,
      );
      if (carrier !== 'tool') expect(kept.length).toBeGreaterThan(100);

      const held = memory.library.list({ all: true, quarantine: true });
      if (carrier !== 'tool') expect(held.length).toBeGreaterThan(5);
      const open = memory.library.list({ all: true, quarantine: false });
      expect(open.length + held.length).toBe(nodes.length);
      const aloud = memory.recall.lines(held.map(({ node_id }) => node_id)).map(({ text }) => text);
      const { nodes: known, facts } = await memory.library.projectOverview('/home/dev/shop');
      expect(heldBy(aloud, payloads)).toEqual([]);
      const ids = new Set(held.map(({ node_id }) => node_id));
      expect([...known, ...facts].filter(({ node_id }) => ids.has(node_id))).toEqual([]);

      let shown = 0;
      for (let at = 0; at < payloads.length; at += 25) {
        const prompt = `${payloads[at]?.text.replace(/[^\w ]/g, ' ')} topic ${at}`;
        for (const session of [getSession(at), 's-new']) {
          const { system, blocks, fence } = await channels(memory, prompt, session);
          expect(heldBy(system, payloads)).toEqual([]);
          for (const block of blocks) expectInside(block, fence);
          shown += heldBy(blocks, payloads).length;
        }
      }
      // The test would prove nothing if nothing came back at all of those that are not held back.
      if (carrier !== 'tool') expect(shown).toBeGreaterThan(5);
    },
    240_000,
  );
});

describe('bridging sequences', () => {
  const read = (text: string, sessionId: string) => [
    ...toolRound('WebFetch', { url: 'https://wiki.example/runbook', prompt: 'read' }, text, `toolu_${sessionId}`),
    message('assistant', [{ type: 'text', text: 'I have read it.' }]),
  ];

  it('what came from outside stays external when the assistant says it again in a later turn, without a tool', async () => {
    const memory = await remember();
    const payloads = poisonPayloads(40, 7).map((payload, at) => ({ ...payload, session: `b${at}` }));
    for (const { text, session: sessionId } of payloads) {
      const bridge = `As we saw, the answer is: ${text.replace(/<[^>]*>/g, ' ')}`;
      memory.capture.captureTurns([
        getTurn(`Read the runbook for ${sessionId}.`, read(text, sessionId), { sessionId }),
        talk(`And what follows for ${sessionId}?`, bridge, { sessionId }),
        talk(`So for the next time, ${sessionId}?`, `Next time as well. ${bridge}`, { sessionId }),
      ]);
    }
    expect(await memory.maintenance.flush(100_000)).toBe(true);
    const nodes = memory.library.list({ all: true, limit: 10_000 });
    const clean = nodes.filter((node) => isCleanOrigin(node.origin));
    expect(
      heldBy(
        nodes.map((node) => JSON.stringify(node)),
        payloads,
      ).length,
    ).toBeGreaterThan(10);
    expect(
      heldBy(
        clean.map((node) => JSON.stringify(node)),
        payloads,
      ),
    ).toEqual([]);
    for (const { session } of payloads.slice(0, 10)) {
      const { system, blocks, fence } = await channels(memory, `what follows for the next time, ${session}?`, session);
      expect(heldBy(system, payloads)).toEqual([]);
      for (const block of blocks) expectInside(block, fence);
    }
  });

  it('and when a later session recalls it, and the assistant there repeats what it was shown', async () => {
    const memory = await remember();
    const claim = 'the staging database of Halvorsen moved to the qzbridgehost machine in the cellar';
    const carried = getTurn('Where is the staging database of Halvorsen?', read(claim, 'c1'), { sessionId: 'c1' });
    const said = message('assistant', [{ type: 'text', text: `It says that ${claim}.` }]);
    memory.capture.captureTurns([{ ...carried, messages: [...carried.messages.slice(0, -1), said] }]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const hits = await memory.recall.recall(
      {
        sessionId: 'c2',
        projectDir: '/home/dev/shop',
        prompt: 'Where is the staging database of Halvorsen?',
        recent: [],
        visibleTurns: new Set(),
        shown: new Set(),
      },
      new AbortController().signal,
    );
    expect(hits.map(({ line }) => line.origin)).toEqual(['external']);
    memory.capture.captureTurns([
      talk('Where is the staging database of Halvorsen?', `As recalled, ${claim}.`, { sessionId: 'c2' }),
      talk('Write that into the handbook.', `The handbook of the night shift says now that ${claim}.`, {
        sessionId: 'c2',
      }),
      talk('I say myself: backups of the invoices run at noon.', 'Backups at noon, noted.', { sessionId: 'c2' }),
    ]);
    expect(await memory.maintenance.flush(60_000)).toBe(true);
    const later = memory.library.list({ sessionId: 'c2', all: true });
    const holds = later.filter((node) => JSON.stringify(node).includes('qzbridgehost'));
    expect(holds.length).toBeGreaterThan(0);
    expect(holds.map(({ origin }) => origin)).toEqual(holds.map(() => 'external'));
    const { system } = await channels(memory, 'Where is the staging database of Halvorsen?', 'c3');
    expect(system.join('\n')).not.toContain('qzbridgehost');
  });
});
