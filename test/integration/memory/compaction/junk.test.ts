import { expect, test } from 'vitest';
import { plantedConversation } from '../../../../bench/local/planted.ts';
import { seeded } from '../../../../bench/local/seeded.ts';
import type { CapturedTurn } from '../../../../common/turn.ts';
import { createLocalModel } from '../../../../memory/compaction/rules-model.ts';
import { createStaticEmbedder } from '../../../../memory/embeddings/static-embedder.ts';
import { openPageFiles } from '../../../../memory/storage/fs/page-files.ts';
import { junkTurns } from '../../../fixtures/junk.ts';
import { createDisk, openRig } from '../../../helpers/memory-rig.ts';
import { tempDirs } from '../../../helpers/temp-dir.ts';
import { talk } from '../../../helpers/turns.ts';

const tempDir = tempDirs();
const EACH = 64;
const DAYS = [21, 22, 23];

function goodTurns() {
  const days = DAYS.map(plantedConversation);
  const turns = days.flatMap((day) =>
    day.turns.map(({ turn }) => talk(turn.user, turn.parts.at(-1)?.text ?? '', { key: turn.turnId.padStart(64, '0') })),
  );
  return { turns, facts: days.flatMap((day) => day.facts.map(({ values }) => values)) };
}

/** Good turns in their order, junk anywhere between them. */
function mixed(good: readonly CapturedTurn[], junk: readonly CapturedTurn[]): CapturedTurn[] {
  const random = seeded(7);
  const places = [...good.map(() => true), ...junk.map(() => false)];
  const [goods, junks] = [[...good], random.shuffled(junk)];
  return random.shuffled(places).map((isGood) => (isGood ? goods.shift() : junks.shift()) as CapturedTurn);
}

test('what spoils memories is in none of them nor in their pages, and what was said among it is', async () => {
  const junk = junkTurns(1, EACH);
  const { turns, facts } = goodTurns();
  expect(junk.length).toBeGreaterThanOrEqual(300);
  expect(facts.length).toBeGreaterThan(100);
  const disk = createDisk();
  const local = createLocalModel({ embedder: createStaticEmbedder() });
  const pageFiles = await openPageFiles({ dir: await tempDir(), nodesDir: '/nodes' });
  const memory = await openRig(disk, { llm: 'local', local, pageFiles });
  const all = mixed(
    turns,
    junk.map(({ turn }) => turn),
  );
  memory.capture.captureTurns(all.map((turn, at) => ({ ...turn, atMs: 1_800_000_000_000 + at * 60_000 })));
  expect(await memory.maintenance.flush(50_000)).toBe(true);

  const nodes = memory.library.list({ all: true });
  const getText = (node: (typeof nodes)[number]): string =>
    [node.summary, node.trigger, ...node.topic_tags, ...node.facts.map((fact) => `${fact.concept} ${fact.value}`)].join(
      '\n',
    );
  const ids = all.map(({ turnId }) => turnId);
  expect(memory.recall.nodesCovering(ids).size).toBe(all.length);
  expect(new Set(nodes.flatMap((node) => node.turns)).size).toBeLessThan(all.length - junk.length / 2);
  const isJunk = (text: string): boolean =>
    /junk[a-z]+\d+x\d+|heartbeat|\bping\b|\bpong\b|mem_\d{8}|status: ok|still in progress|process id/i.test(text);
  const spoilt = nodes.filter((node) => isJunk(getText(node)));
  const share = spoilt.length / nodes.length;
  expect({ share, some: spoilt.slice(0, 3).map(getText) }).toMatchObject({ share: expect.closeTo(0, 1) });
  expect(share).toBeLessThan(0.05);

  const remembered = nodes.map(getText).join('\n');
  const lost = facts.filter((values) => !values.every((value) => remembered.includes(value)));
  expect(lost.length / facts.length).toBeLessThanOrEqual(0.05);
  const brief = JSON.stringify(await memory.recall.sessionContext('another', '/home/dev/shop'));
  expect(brief).not.toMatch(/junk[a-z]+\d+x\d+/);

  await memory.maintenance.dream({ dryRun: false });
  const { topics } = await memory.library.listTopics({});
  const pages = await Promise.all(topics.map(({ name }) => memory.library.readTopic(name, {})));
  const stated = pages.flatMap(({ lines }) => lines.map(({ text }) => text.replace(/ \(mem_[^)]*\)$/, '')));
  expect(stated.length).toBeGreaterThan(15);
  expect(stated.filter(isJunk)).toEqual([]);
  await memory.maintenance.close();
});
