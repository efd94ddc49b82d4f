import { describe, expect, it } from 'vitest';
import { createTerminal, SUMMARISE, type TerminalOptions } from '../../../fuzz/fake-client.ts';
import { createWireRig, type Exchange, earlyCuts } from '../../../fuzz/rewriter-rig.ts';
import { getText, left, oursIn, step, talkativeMemory, walk } from '../../../fuzz/story.ts';

const SESSION = 'aaaaaaaa-0000-4000-8000-000000000000';

async function begun(turns: number, options: TerminalOptions = {}) {
  const rig = await createWireRig({ memory: talkativeMemory() });
  const terminal = createTerminal(rig, options);
  return { rig, terminal, last: await walk(terminal, 1, turns) };
}

describe('who asks', () => {
  it.each([
    ['a suggestion', '[SUGGESTION MODE: say what the user may type next]', {}],
    ['a question beside the conversation', 'What was that port again?', {}],
    ['one that says what it is', 'What was that port again?', { 'x-claude-code-request-class': 'auxiliary' }],
    ['a recap', 'The user stepped away and is coming back. Recap in under 40 words.', {}],
    ['a compaction', SUMMARISE, {}],
    ['a compaction that says what it is', 'Sum it up.', { 'x-claude-code-request-class': 'compaction' }],
  ])('%s sees what the conversation sees, adds nothing, and is no turn', async (_, prompt, headers) => {
    const { rig, terminal, last } = await begun(8);
    const before = rig.records.length;
    const turns = rig.memory.captured.size;
    const aside = await terminal.aside(prompt, headers);
    expect(aside).toMatchObject({ refusal: null, rewritten: true });
    expect(oursIn(aside)).toEqual(oursIn(last));
    expect(rig.records.length).toBe(before);
    await walk(terminal, 9, 9);
    expect(
      [...rig.memory.captured.values()].filter(({ messages }) => JSON.stringify(messages).includes(prompt)),
    ).toEqual([]);
    expect(rig.memory.captured.size).toBeGreaterThan(turns);
  });

  it('the compaction of a subagent captures nothing of it', async () => {
    const { rig } = await begun(4);
    const agent = createTerminal(rig, { headers: { 'x-claude-code-agent-id': 'a1' } });
    await agent.ask({ ...step(1), prompt: 'Count the boats of the agent.' });
    const aside = await agent.aside(SUMMARISE, { 'x-claude-code-request-class': 'compaction' });
    expect(aside).toMatchObject({ refusal: null, rewritten: false });
    await new Promise(setImmediate);
    expect(JSON.stringify([...rig.memory.captured.values()])).not.toContain('Count the boats');
  });

  it('count_tokens is rewritten by the current plan and starts none', async () => {
    const { rig, terminal, last } = await begun(8);
    expect((await terminal.again('count_tokens')).sent.equals(last.sent)).toBe(true);
    const before = rig.records.length;
    const fresh = createTerminal(rig, { sessionId: 'dddddddd-0000-4000-8000-000000000000' });
    const [counted] = await fresh.ask(step(50), 'count_tokens');
    expect(counted?.rewritten).toBe(false);
    expect(rig.records.length).toBe(before);
  });

  it('a prompt that could not be counted is a new prompt for the conversation', async () => {
    const { rig, terminal } = await begun(8);
    await createTerminal(rig, terminal.shape).ask(step(9), 'uncounted');
    const [first] = await terminal.ask(step(9));
    expect(oursIn(first as Exchange).join()).toContain('clean for Step 9');
  });

  it.each([
    ['an agent id', { 'x-claude-code-agent-id': 'a1' }],
    ['its class', { 'x-claude-code-request-class': 'subagent' }],
    ['a workflow', { 'x-claude-code-request-class': 'workflow' }],
  ])(
    'subagents told by %s go side by side, each as it came, though they begin like their parent',
    async (_, headers) => {
      const { rig, terminal } = await begun(4);
      const agents = [1, 2, 3].map(() => createTerminal(rig, { headers }));
      const [, ...parent] = await Promise.all([
        Promise.all(agents.map((agent) => agent.ask({ ...step(1), rounds: [], answer: 'An agent reports.' }))),
        walk(terminal, 5, 5),
      ]);
      expect(parent[0]?.rewritten).toBe(true);
      for (const agent of agents) {
        const exchanges = [...agent.said.map(({ exchange }) => exchange), ...(await agent.ask(step(2)))];
        expect(exchanges.map(({ rewritten, refusal }) => [rewritten, refusal])).toEqual(
          exchanges.map(() => [false, null]),
        );
      }
      expect(
        [...rig.memory.captured.values()].some(({ messages }) => JSON.stringify(messages).includes('An agent')),
      ).toBe(false);
    },
  );

  it('a subagent that continues its parent’s history sees what its parent sent, and adds nothing', async () => {
    const { rig, terminal, last } = await begun(8);
    const agent = createTerminal(rig, { ...terminal.shape, headers: { 'x-claude-code-agent-id': 'a1' } });
    const before = rig.records.length;
    const [first] = await agent.ask({ prompt: 'Look at the logs of step 3.' });
    expect(first).toMatchObject({ refusal: null, rewritten: true });
    expect(oursIn(first as Exchange)).toEqual(oursIn(last));
    expect(rig.records.length).toBe(before);
  });

  it.each([
    ['a subagent that continues its parent’s history', { 'x-claude-code-agent-id': 'a1' }],
    ['notes that Claude Code writes for itself', { 'x-claude-code-request-class': 'auxiliary' }],
  ])('%s keeps all thinking, and so the prompt cache, while it uses tools', async (_, headers) => {
    const { rig, terminal } = await begun(8);
    const fork = createTerminal(rig, { ...terminal.shape, headers });
    const signatures = (exchange?: Exchange) => exchange?.sent.toString().match(/"signature":"[^"]+"/g) ?? [];
    const [first, ...others] = await fork.ask({ ...step(3), prompt: 'Look at the logs of step 3.' });
    expect(signatures(first).length).toBeGreaterThan(0);
    for (const each of others) {
      expect(each.refusal).toBeNull();
      expect(signatures(each)).toEqual([...signatures(first), expect.any(String)]);
    }
  });

  it('what continues a message thread goes out as it came: it is the end of a conversation that upstream holds', async () => {
    const { rig, terminal } = await begun(8, { version: '2.1.332' });
    const before = rig.records.length;
    const fields = { thread: { type: 'continue', previous_message_id: 'msg_8' } };
    const { sessionId } = terminal.shape;
    const tail = createTerminal(rig, { version: '2.1.332', sessionId, form: { fields } });
    const [exchange] = await tail.ask(step(9));
    expect(exchange?.sent.equals(exchange.request.bytes)).toBe(true);
    expect(rig.records.length).toBe(before);
    const whole = { thread: { type: 'create' } };
    const [created] = await createTerminal(rig, { ...terminal.shape, form: { fields: whole } }).ask(step(9));
    expect(created?.rewritten).toBe(true);
  });

  it('a recap that was asked for in a pause keeps the prompt cache warm, so a cut is not free after it', async () => {
    const minutes = (count: number): number => count * 60_000;
    const play = async (recaps: boolean): Promise<boolean> => {
      const rig = await createWireRig({ memory: talkativeMemory(), config: { cut: earlyCuts({ margin: 1_000 }) } });
      const terminal = createTerminal(rig, { ttl: '1h' });
      await walk(terminal, 1, 8);
      rig.clock.nowMs += minutes(50);
      if (recaps) await terminal.aside('The user stepped away and is coming back. Recap in under 40 words.');
      rig.clock.nowMs += minutes(50);
      return left(await walk(terminal, 9, 9)) > 0;
    };
    expect([await play(true), await play(false)]).toEqual([false, true]);
  });

  it('a request that upstream refused in a pause did not use the prompt cache, so a cut is free after it', async () => {
    const rig = await createWireRig({ memory: talkativeMemory(), config: { cut: earlyCuts({ margin: 1_000 }) } });
    const terminal = createTerminal(rig, { ttl: '1h' });
    expect(left(await walk(terminal, 1, 8))).toBe(0);
    for (const minutes of [50, 50]) {
      rig.clock.nowMs += minutes * 60_000;
      await terminal.again('overloaded');
    }
    expect(left(await walk(terminal, 9, 9))).toBeGreaterThan(0);
  });

  it('a subscribed subagent gets its facts with its first request, replayed byte for byte, also after a restart', async () => {
    const text = '## Facts\n- Project.Decision: "Kafka"';
    const subagents = { slice: async () => ({ agent: 'a', because: 'a.md', text }), givenTo: () => null };
    const rig = await createWireRig({ memory: talkativeMemory(), subagents });
    const parent = createTerminal(rig, {});
    await walk(parent, 1, 2);
    const agent = createTerminal(rig, { sessionId: SESSION, headers: { 'x-claude-code-agent-id': 'a1' } });
    const sent = [...(await agent.ask(step(1)))];
    await rig.restart();
    sent.push(await agent.again(), ...(await agent.ask(step(2))));
    const places = sent.map(({ sent: bytes, refusal }) => {
      const { messages } = JSON.parse(bytes.toString()) as { messages: readonly unknown[] };
      expect(refusal).toBeNull();
      return messages.map((message) => JSON.stringify(message)).map((message) => message.split('Kafka').length - 1);
    });
    for (const place of places) expect(place).toEqual(place.map((_, at) => Number(at === 0)));
    const added = sent.map(({ sent: bytes }) => /<comet-cc-memory .*?<\/comet-cc-memory/.exec(bytes.toString())?.[0]);
    expect(new Set(added).size).toBe(1);
    expect((await walk(parent, 3, 4)).sent.includes('Kafka')).toBe(false);
  });

  it('hint headers and their absence make the same of a conversation', async () => {
    const told = await begun(8, { headers: { 'x-claude-code-request-class': 'main' } });
    const untold = await begun(8);
    expect(oursIn(told.last)).toEqual(oursIn(untold.last));
    expect(left(told.last)).toBe(left(untold.last));
    expect(left(told.last)).toBeGreaterThan(0);
  });
});

describe('whose session it is', () => {
  const none = { 'x-claude-code-session-id': '' };
  const getSessions = (rig: Awaited<ReturnType<typeof begun>>['rig']) => [
    ...new Set([...rig.memory.captured.values()].map(({ sessionId }) => sessionId)),
  ];

  it.each([
    ['the old form', `user_${'a'.repeat(64)}_account__session_${SESSION}`],
    ['the JSON form', JSON.stringify({ device_id: 'd', account_uuid: '', session_id: SESSION })],
  ])('metadata.user_id in %s names it where no header does', async (_, userId) => {
    const { rig, last } = await begun(8, { headers: none, form: { userId } });
    expect(getSessions(rig)).toEqual([SESSION]);
    expect(left(last)).toBeGreaterThan(0);
  });

  it('a conversation without any id is told by where it runs and how it began, and is trimmed all the same', async () => {
    const options = { headers: none, form: { userId: 'nobody' } };
    const { rig, terminal, last } = await begun(8, options);
    expect(left(last)).toBeGreaterThan(0);
    expect((await terminal.again()).sent.equals(last.sent)).toBe(true);
    expect(getSessions(rig)).toEqual([expect.stringMatching(/^nameless-[0-9a-f]{24}$/)]);
    const elsewhere = createTerminal(rig, { ...options, cwd: '/home/ada/other' });
    const plans = rig.records.filter(({ kind }) => kind === 'plan').length;
    await elsewhere.ask({ ...step(1), rounds: [] });
    expect(rig.records.filter(({ kind }) => kind === 'plan').length).toBe(plans + 1);
  });

  it('a first prompt that two sessions share is two conversations', async () => {
    const { rig, terminal } = await begun(1);
    const other = createTerminal(rig, { sessionId: 'eeeeeeee-0000-4000-8000-000000000000' });
    rig.memory.recall = async () => [];
    rig.memory.sessionContext = async () => ({ brief: [], lines: [] });
    const [first] = await other.ask(step(1));
    expect(first?.rewritten).toBe(false);
    expect(getText((await terminal.again()) as Exchange)).toContain('comet-cc');
  });
});
