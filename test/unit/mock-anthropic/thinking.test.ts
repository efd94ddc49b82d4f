import { beforeEach, describe, expect, it } from 'vitest';
import type { Json } from '../../helpers/transcripts.ts';
import { type AnswerBlock, createJudge, type Judge } from '../../mock-anthropic/index.ts';

const BOUND =
  'The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".';

const think = (thinking: string): AnswerBlock => ({ type: 'thinking', thinking });
const say = (text: string): AnswerBlock => ({ type: 'text', text });
const call = (id: string): AnswerBlock => ({ type: 'tool_use', id, name: 'Bash', input: { command: 'ls', n: 1 } });

let judge: Judge;
let body: Json & { messages: Json[] };

function ask(more: Json = {}, headers: Record<string, string> = {}) {
  return judge.judge({ body: { ...body, ...more }, headers, atMs: 0 });
}

function reason(more: Json = {}, headers: Record<string, string> = {}): string | null {
  return ask(more, headers).refusal?.message ?? null;
}

/** One round: the answer goes into the history, then the next user message. */
function play(answer: readonly AnswerBlock[], next: unknown): void {
  const verdict = ask();
  if (verdict.refusal) throw new Error(verdict.refusal.message);
  body.messages.push({ role: 'assistant', content: verdict.seal(answer) }, { role: 'user', content: next });
}

/** Messages: 0 prompt, 1 thinking+call, 2 result, 3 thinking+answer, 4 prompt, 5 two thinking+answer, 6 prompt. */
beforeEach(() => {
  judge = createJudge();
  body = {
    model: 'claude-opus-5-5',
    max_tokens: 100,
    tools: [{ name: 'Bash', description: 'runs', input_schema: { type: 'object' } }],
    system: [{ type: 'text', text: 'Be exact.' }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'and a half' },
        ],
      },
    ],
  };
  play([think('a'), call('t1')], [{ type: 'tool_result', tool_use_id: 't1', content: 'a long result' }]);
  play([think('b'), say('done')], 'two');
  play([think('c'), think('d'), say('done again')], 'three');
});

function content(index: number): Json[] {
  return body.messages[index]?.content as Json[];
}

function without(index: number, ...at: number[]): void {
  body.messages[index] = { ...body.messages[index], content: content(index).filter((_, place) => !at.includes(place)) };
}

describe('a changed prefix invalidates', () => {
  it.each<[string, () => void]>([
    [
      'an edited message',
      () => {
        body.messages[0] = { role: 'user', content: 'other' };
      },
    ],
    ['a removed text block of an earlier user turn', () => without(0, 1)],
    [
      'an added text block in an earlier user turn',
      () => {
        content(0).push({ type: 'text', text: 'more' });
      },
    ],
    [
      'a shortened tool result',
      () => {
        content(2)[0] = { ...content(2)[0], content: 'a long' };
      },
    ],
    [
      'an edited tool call',
      () => {
        content(1)[1] = { ...content(1)[1], input: { command: 'pwd' } };
      },
    ],
    [
      'turns cut out, their thinking with them',
      () => {
        body.messages.splice(1, 3);
      },
    ],
    [
      'a reordered block',
      () => {
        content(0).reverse();
      },
    ],
  ])('by %s', (_, change) => {
    change();
    expect(reason()).toContain(BOUND);
  });

  it('by the system prompt, and says so', () => {
    expect(reason({ system: 'Be quick.' })).toBe(
      `messages.1.content.0: Invalid \`signature\` in \`thinking\` block. ${BOUND} That setting requires the \`thinking-binding-controls-2026-08-01\` value in the \`anthropic-beta\` header. The \`system\` prompt differs from the one this block was created with.`,
    );
  });

  it.each<[string, Json[]]>([
    [
      'added',
      [
        { name: 'Bash', description: 'runs', input_schema: { type: 'object' } },
        { name: 'Read', input_schema: {} },
      ],
    ],
    ['removed', []],
    ['edited', [{ name: 'Bash', description: 'executes', input_schema: { type: 'object' } }]],
  ])('by a tool %s, and says so', (_, tools) => {
    expect(reason({ tools })).toContain('The `tools` list differs from the one this block was created with.');
  });

  it('by a thinking block taken out of the middle, and says so', () => {
    without(3, 0);
    expect(reason()).toContain('messages.5.content.0: Invalid `signature`');
    expect(reason()).toContain(
      'The `thinking` block that preceded this one when it was created is missing from this request.',
    );
  });

  it('by a thinking block put back that was missing when a later one was made', () => {
    const whole = body.messages[1] as Json;
    without(1, 0);
    play([think('e'), say('later')], 'four');
    expect(reason()).toBeNull();
    body.messages[1] = whole;
    expect(reason()).toContain('messages.7.content.0: Invalid `signature`');
  });
});

describe('nothing is invalidated', () => {
  it.each<[string, () => Json | undefined]>([
    [
      'by appending',
      () => {
        play([say('ok')], 'four');
        return undefined;
      },
    ],
    [
      'by cache_control',
      () => {
        content(0)[1] = { ...content(0)[1], cache_control: { type: 'ephemeral' } };
        return undefined;
      },
    ],
    [
      'by effort, max_tokens, tool_choice and metadata',
      () => ({
        output_config: { effort: 'low' },
        max_tokens: 9,
        tool_choice: { type: 'auto' },
        metadata: { user_id: 'x' },
      }),
    ],
    [
      'by the order of keys',
      () => {
        content(1)[1] = { input: { n: 1, command: 'ls' }, name: 'Bash', id: 't1', type: 'tool_use' };
        return undefined;
      },
    ],
    [
      'by string or block form',
      () => {
        body.messages[4] = { role: 'user', content: [{ type: 'text', text: 'two' }] };
        return { system: 'Be exact.' };
      },
    ],
    [
      'by deleting thinking from the start',
      () => {
        without(1, 0);
        without(3, 0);
        return undefined;
      },
    ],
    [
      'by deleting thinking from the end',
      () => {
        without(5, 0, 1);
        without(3, 0);
        return undefined;
      },
    ],
    [
      'by deleting all thinking',
      () => {
        without(5, 0, 1);
        without(3, 0);
        without(1, 0);
        return undefined;
      },
    ],
    [
      'by emptied thinking text',
      () => {
        content(1)[0] = { ...content(1)[0], thinking: '' };
        return undefined;
      },
    ],
    [
      'by a deferred tool',
      () => ({ tools: [...(body.tools as Json[]), { name: 'Late', input_schema: {}, defer_loading: true }] }),
    ],
    [
      'by merged user messages',
      () => {
        body.messages[0] = { role: 'user', content: 'one' };
        body.messages.splice(1, 0, { role: 'user', content: 'and a half' });
        return undefined;
      },
    ],
  ])('%s', (_, change) => {
    expect(reason(change() ?? {})).toBeNull();
  });

  it('by an attribution block that changes at the first place only', () => {
    const attribution = (n: number) => ({ type: 'text', text: `x-anthropic-billing-header: cc_version=2; cch=${n};` });
    expect(reason({ system: [attribution(1), { type: 'text', text: 'Be exact.' }] })).toBeNull();
    expect(reason({ system: [{ type: 'text', text: 'Be exact.' }, attribution(1)] })).toContain(
      '`system` prompt differs',
    );
  });
});

describe('signatures', () => {
  it('of someone else, or of changed text, are invalid', () => {
    content(1)[0] = { ...content(1)[0], thinking: 'other' };
    expect(reason()).toBe('messages.1.content.0: Invalid `signature` in `thinking` block');
    content(1)[0] = { type: 'thinking', thinking: 'a', signature: 'x'.repeat(80) };
    expect(reason()).toBe('messages.1.content.0: Invalid `signature` in `thinking` block');
  });

  it('hold across stand-ins with one secret', () => {
    const secret = Buffer.alloc(32, 7);
    judge = createJudge({ secret });
    body.messages = [{ role: 'user', content: 'one' }];
    play([think('a'), say('x')], 'two');
    judge = createJudge({ secret });
    expect(reason()).toBeNull();
    judge = createJudge();
    expect(reason()).toContain('Invalid `signature`');
  });

  it('of redacted thinking are bound alike', () => {
    play([{ type: 'redacted_thinking' }, say('x')], 'four');
    expect(reason()).toBeNull();
    expect(content(7)[0]).toMatchObject({ type: 'redacted_thinking' });
    expect(reason({ messages: body.messages.slice(4) })).toContain('Invalid `signature`');
  });

  it('come without text when the client asks for that', () => {
    const verdict = ask({}, { 'anthropic-beta': 'redact-thinking-2026-02-12' });
    expect(verdict.refusal === null && verdict.seal([think('secret')])).toMatchObject([{ thinking: '' }]);
  });
});

describe('the latest assistant message', () => {
  it.each<[string, () => void]>([
    ['half of it dropped', () => without(5, 0)],
    ['its other half dropped', () => without(5, 1)],
    [
      'reordered',
      () => {
        content(5).splice(0, 2, content(5)[1] as Json, content(5)[0] as Json);
      },
    ],
    [
      'edited',
      () => {
        content(5)[1] = { ...content(5)[1], thinking: 'other' };
      },
    ],
  ])('may not have its thinking %s', (_, change) => {
    change();
    expect(reason()).toContain('blocks in the latest assistant message cannot be modified');
  });

  it('may lose all of it', () => {
    without(5, 0, 1);
    expect(reason()).toBeNull();
  });
});

describe('who is checked', () => {
  it('no one when it is switched off', () => {
    judge = createJudge({ enforceThinking: false });
    expect(reason({ system: 'other' })).toBeNull();
  });

  it('models that do not bind: any prefix, still no foreign signature', () => {
    judge = createJudge();
    body.model = 'claude-opus-4-8';
    body.messages = [{ role: 'user', content: 'one' }];
    play([think('a'), say('x')], 'two');
    expect(reason({ system: 'other' })).toBeNull();
    content(1)[0] = { type: 'thinking', thinking: 'a', signature: 'x'.repeat(80) };
    expect(reason()).toContain('Invalid `signature`');
  });

  it('blocks of another model are left out without an error', () => {
    const verdict = ask({ model: 'claude-fable-5-1', system: 'other' });
    expect(verdict.refusal === null && verdict.dropped).toHaveLength(4);
  });

  it('drop_block leaves the invalid ones and all later ones out', () => {
    content(2)[0] = { ...content(2)[0], content: 'short' };
    const thinking = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
    const headers = { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' };
    const verdict = ask({ thinking }, headers);
    expect(verdict.refusal === null && verdict.dropped).toEqual([
      'messages.3.content.0',
      'messages.5.content.0',
      'messages.5.content.1',
    ]);
    expect(reason({ thinking })).toContain('block_binding: Extra inputs are not permitted');
  });

  it('count_tokens as well', () => {
    const verdict = judge.judge({ body: { ...body, system: 'other' }, headers: {}, atMs: 0, path: 'count_tokens' });
    expect(verdict.refusal?.message).toContain(BOUND);
  });
});
