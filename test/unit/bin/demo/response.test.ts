import { describe, expect, it } from 'vitest';
import { findAnswer, storyBrain, UNKNOWN } from '../../../../bin/demo/response.ts';
import { isQuestion, STORY } from '../../../../bin/demo/story.ts';
import type { ServedRequest } from '../../../mock-anthropic/index.ts';

const turns = STORY.flatMap((session) => session.turns);
const question = turns.filter(isQuestion).at(0);
if (question === undefined) throw new Error('the story asks nothing');
const { prompt } = question;
const told = 'Remember: the sandbox listens on port 7413.';
const line = `- [mem_1] 2026-01-01 (user) ${told}`;
const fence = (text: string) => ({
  type: 'text',
  text: `<comet-cc-memory fence="a">\n${text}\n</comet-cc-memory fence="a">`,
});
const ask = { type: 'text', text: prompt };

describe('the demo answers from what it was sent', () => {
  it('does not know what the request does not hold', () => {
    const body = { messages: [{ role: 'user', content: [ask] }] };
    expect(findAnswer(body, question)).toBeNull();
    const answer = storyBrain(STORY, () => {})({ body } as unknown as ServedRequest);
    expect(answer).toEqual({ kind: 'message', blocks: [{ type: 'text', text: UNKNOWN }] });
  });

  it('names the node of the memory line behind the prompt before one in the preamble', () => {
    const other = line.replace('mem_1', 'mem_2');
    const messages = [{ role: 'user', content: [fence(other), ask, fence(line)] }];
    expect(findAnswer({ messages }, question)).toEqual({ channel: 'recalled', line, nodeId: 'mem_1' });
  });

  it('reads the system block and system messages of the memory proxy, and no other ones', () => {
    const system = [{ type: 'text', text: `comet-cc, a memory proxy\n${line}` }];
    const messages = [{ role: 'user', content: [ask] }];
    expect(findAnswer({ system, messages }, question)).toMatchObject({ channel: 'system block', nodeId: 'mem_1' });
    expect(findAnswer({ system: [{ type: 'text', text: told }], messages }, question)).toBeNull();
    const recalled = [...messages, { role: 'system', content: `comet-cc recalls:\n${line}` }];
    expect(findAnswer({ messages: recalled }, question)).toMatchObject({ channel: 'recalled', nodeId: 'mem_1' });
  });

  it('does not count words of the conversation itself as memory', () => {
    const messages = [
      { role: 'user', content: told },
      { role: 'assistant', content: 'Yes.' },
      { role: 'user', content: [ask] },
    ];
    expect(findAnswer({ messages }, question)).toEqual({ channel: 'conversation', line: told, nodeId: null });
  });
});

describe('the story of the demo', () => {
  it('has at least 34 turns, no prompt twice, and no question that holds its own answer', () => {
    const prompts = turns.map((turn) => turn.prompt);
    expect(turns.length).toBeGreaterThanOrEqual(34);
    expect(new Set(prompts).size).toBe(prompts.length);
    expect(turns.filter(isQuestion).filter((each) => each.right.test(each.prompt))).toEqual([]);
  });

  it('tells every answer long before it is asked for or in an earlier session, and never after', () => {
    const getSession = (at: number): number => STORY.findIndex((session) => session.turns.includes(turns[at] as never));
    for (const each of turns.filter(isQuestion)) {
      const at = turns.indexOf(each);
      const telling = turns.flatMap((turn, index) =>
        each.right.test(JSON.stringify(turn)) && index !== at ? [index] : [],
      );
      expect(telling.length).toBeGreaterThan(0);
      const last = Math.max(...telling);
      expect(last < at - 6 || getSession(last) < getSession(at)).toBe(true);
    }
  });
});
