import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isCleanOrigin } from '../../../../common/turn.ts';
import type { Memory, MemoryLine } from '../../../../memory/index.ts';
import { renderRetrieval, renderSystemBlock } from '../../../../proxy/rewrite/render.ts';
import { createDisk, type Disk, openRig } from '../../../helpers/memory-rig.ts';
import { CARRIERS, carriedTurns, PAYLOADS, PROJECT } from '../../../helpers/wire-carriers.ts';

const getMarker = (carrier: number, payload: number): string =>
  `qz${String.fromCharCode(97 + Math.floor(carrier / 26), 97 + (carrier % 26), 97 + payload)}marker`;
const getSession = (carrier: number, payload: number): string => `s-${carrier}-${payload}`;

const attacks = CARRIERS.flatMap((carrier, at) =>
  PAYLOADS.map((make, payload) => {
    const marker = getMarker(at, payload);
    return {
      carrier,
      payload,
      marker,
      text: make(marker),
      sessionId: getSession(at, payload),
      atMs: 1_800_000_000_000 + at,
    };
  }),
);

let memory: Memory;
let library: Memory['library'];
let disk: Disk;
beforeAll(async () => {
  disk = createDisk();
  memory = await openRig(disk, { llm: 'local' });
  ({ library } = memory);
  for (const { carrier, text, sessionId, atMs } of attacks) {
    memory.capture.captureTurns(carriedTurns(carrier, text, sessionId, atMs));
  }
  expect(await memory.maintenance.flush(300_000)).toBe(true);
}, 300_000);
afterAll(() => memory.maintenance.close());

/** One of each carrier's payloads, another for the next. */
const samples = attacks.filter((_, at) => at % PAYLOADS.length === Math.floor(at / PAYLOADS.length) % PAYLOADS.length);

/** Names of the carriers whose payloads stand in the texts, with the numbers of the payloads. */
function found(texts: readonly string[]): string[] {
  const all = texts.join('\n').toLowerCase();
  const held = attacks.filter(({ marker }) => all.includes(marker));
  return [...new Set(held.map(({ carrier }) => carrier.name))].map(
    (name) =>
      `${name}: ${held
        .filter(({ carrier }) => carrier.name === name)
        .map(({ payload }) => payload)
        .join()}`,
  );
}

const getLine = ({ nodeId, text, origin }: MemoryLine) => ({ nodeId, text, clean: isCleanOrigin(origin) });

test('60 carriers and 5 payloads each are tried, and every payload is in memory', async () => {
  expect(CARRIERS.length).toBeGreaterThanOrEqual(60);
  expect(new Set(CARRIERS.map(({ name }) => name)).size).toBe(CARRIERS.length);
  const nodes = library.list({ all: true, limit: 100_000 });
  const all = nodes.map((node) => JSON.stringify(node).toLowerCase()).join('\n');
  const lost = attacks.filter(({ marker }) => !all.includes(marker));
  expect(lost.map(({ carrier, text }) => `${carrier.name}: ${text}`)).toEqual([]);
});

test('no payload is of origin user or assistant', () => {
  const clean: string[] = [];
  for (const node of library.list({ all: true, limit: 100_000 })) {
    const { facts, decisions = [], open = [], ...rest } = node;
    if (isCleanOrigin(node.origin)) clean.push(JSON.stringify(rest));
    for (const each of [...facts, ...decisions, ...open]) {
      if (isCleanOrigin(each.origin ?? node.origin)) clean.push(JSON.stringify(each));
    }
  }
  for (const { active, hints } of disk.briefs.values()) {
    for (const claim of [...active, ...hints]) if (isCleanOrigin(claim.origin)) clean.push(claim.text);
  }
  expect(found(clean)).toEqual([]);
});

test('no payload is in what search quotes as said by user or assistant', async () => {
  const clean: string[] = [];
  for (const { marker, text } of samples) {
    for (const { line, raw } of await memory.recall.search(text, { top: 3, projectDir: PROJECT })) {
      if (!isCleanOrigin(line.origin)) continue;
      if (`${line.text} ${raw?.text ?? ''}`.toLowerCase().includes(marker)) clean.push(`${marker} ${line.text}`);
    }
  }
  expect(clean).toEqual([]);
});

test('no payload is in a system channel', async () => {
  const system: string[] = [];
  for (const session of ['s-new', ...samples.map(({ sessionId }) => sessionId)]) {
    const { brief, lines } = await memory.recall.sessionContext(session, PROJECT);
    system.push(renderSystemBlock({ brief, lines: lines.map(getLine), budgetTokens: 100_000 })?.text ?? '');
  }
  for (const { text } of samples) {
    const request = { sessionId: 's-new', projectDir: PROJECT, prompt: text, recent: [] };
    const hits = await memory.recall.recall(
      { ...request, visibleTurns: new Set(), shown: new Set() },
      new AbortController().signal,
    );
    const fence = randomBytes(8).toString('hex');
    const options = { budgetTokens: 100_000, fence, anchor: 'a', takesSystemMessages: true, mode: 'auto' as const };
    const injected = renderRetrieval(
      hits.map(({ line }) => getLine(line)),
      options,
    );
    system.push(...injected.filter(({ channel }) => channel === 'system').map((each) => each.text));
  }
  expect(found(system)).toEqual([]);
});
