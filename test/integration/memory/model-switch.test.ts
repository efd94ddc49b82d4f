import { expect, it } from 'vitest';
import { createTerminal } from '../../fuzz/fake-client.ts';
import { createWireRig, type Exchange } from '../../fuzz/rewriter-rig.ts';
import { left, step } from '../../fuzz/story.ts';
import { createDisk, openRig } from '../../helpers/memory-rig.ts';
import { talk } from '../../helpers/turns.ts';

const TURNS = 30;

it('a switch to a smaller context window cuts the first request and stores each turn once', async () => {
  const memory = await openRig(createDisk(), { llm: 'local', model: null });
  const rig = await createWireRig({ memory: { ...memory.capture, ...memory.recall, captured: new Map() } });
  const terminal = createTerminal(rig, { version: '2.1.332', model: 'claude-opus-5-5' });
  const ask = async (number: number): Promise<readonly Exchange[]> => {
    const exchanges = await terminal.ask(step(number, 10_000));
    await memory.maintenance.flush(10_000);
    return exchanges;
  };
  /** The window holds the first request that is sent after the switch, and not the one received. */
  const change = async (model: string, number: number): Promise<void> => {
    terminal.become({ model });
    const [first] = (await ask(number)) as [Exchange];
    const { bytes: body, headers } = first.request;
    const alone = rig.judge.judge({ body, headers, atMs: rig.clock.nowMs });
    expect(alone.refusal?.message).toContain('prompt is too long');
    expect(first.refusal).toBeNull();
    expect(left(first)).toBeGreaterThan(0);
  };
  for (let number = 1; number <= TURNS; number += 1) await ask(number);
  await change('claude-haiku-4-5', TURNS + 1);
  terminal.become({ model: 'claude-opus-5-5' });
  for (let number = TURNS + 2; number <= 2 * TURNS; number += 1) await ask(number);
  await change('claude-haiku-4-5', 2 * TURNS + 1);

  const nodes = await memory.library.list({});
  expect(nodes.flatMap(({ turns }) => turns)).toHaveLength(2 * TURNS + 1);
  await memory.maintenance.close();
});

it('knows turns in another form before they are stored in it', async () => {
  const disk = createDisk();
  let write = Promise.resolve();
  const append: typeof disk.journal.append = (turn) => write.then(() => disk.journal.append(turn));
  const memory = await openRig({ ...disk, journal: { ...disk.journal, append } }, { llm: 'local', model: null });
  const inForm = (form: string) => {
    let before = '';
    return ['Ship on Tuesday.', 'Use port 7413.', 'Ask Ines about the key.'].map((prompt) => {
      const turn = { ...talk(prompt, 'Noted.', { key: `${form} ${prompt}` }), before };
      before = turn.turnId;
      return turn;
    });
  };
  const ids = (form: string): string[] => inForm(form).map(({ turnId }) => turnId);

  memory.capture.captureTurns(inForm('a'));
  memory.capture.prepareNodes('s1', ids('a'));
  await memory.maintenance.flush(10_000);
  const nodes = memory.recall.nodesCovering(ids('a'));
  let release = (): void => {};
  write = new Promise((resolve) => {
    release = resolve;
  });
  memory.capture.captureTurns(inForm('b'));
  await memory.capture.awaitCaptures('s1');
  expect([...memory.recall.nodesCovering(ids('b')).values()]).toEqual([...nodes.values()]);
  expect(nodes.size).toBe(3);
  release();
  await memory.maintenance.flush(10_000);
  const stored = await disk.journal.read('s1');
  expect(stored.map(({ turnId }) => turnId)).toEqual([...ids('a'), ...ids('b')]);
  // Receipts name the turn by the key of its first form.
  const prompts = inForm('a').map(({ key }) => key);
  expect((await memory.library.prompts('s1')).map(({ key }) => key)).toEqual(prompts);
  const messages = await memory.library.readSession('s1');
  expect([...new Set(messages.map(({ turn }) => turn))]).toEqual(prompts);
  await memory.maintenance.close();
});
