import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  asFormerly,
  canonicalizeMessage,
  dropSuperseded,
  extendLineage,
  hashMessage,
  type Pinned,
  readPinned,
} from '../../../../proxy/wire/message.ts';

const mark = { cache_control: { type: 'ephemeral' } };

describe('the canonical form of a message', () => {
  it('does not change when a newest message becomes history', () => {
    const newest = { role: 'user', content: [{ type: 'text', text: 'second turn', ...mark }] };
    expect(hashMessage(newest)).toBe(hashMessage({ content: 'second turn', role: 'user' }));
  });

  it('does not count thinking, which a client may strip from a whole session', () => {
    const thought = { type: 'thinking', thinking: '', signature: 'abc' };
    const said = { type: 'text', text: 'done' };
    const withThinking = { role: 'assistant', content: [thought, said, { type: 'redacted_thinking', data: 'x' }] };
    expect(hashMessage(withThinking)).toBe(hashMessage({ role: 'assistant', content: [said] }));
  });

  it('reads a tool result of one text the same as string and as block', () => {
    const result = (content: unknown) => ({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 't', content }],
    });
    expect(hashMessage(result('ok'))).toBe(hashMessage(result([{ type: 'text', text: 'ok', ...mark }])));
  });

  it('keeps a cache_control that is data of a tool call', () => {
    const call = (input: unknown) => ({
      role: 'assistant',
      content: [{ type: 'tool_use', id: 't', name: 'n', input }],
    });
    expect(hashMessage(call(mark))).not.toBe(hashMessage(call({})));
  });

  it('tells apart what differs, and ignores key order at every depth', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (input) => {
        const reversed = Object.fromEntries(Object.entries(input).reverse());
        const call = (value: unknown) => ({ role: 'assistant', content: [{ type: 'tool_use', input: { value } }] });
        expect(canonicalizeMessage(call(reversed))).toBe(canonicalizeMessage(call(input)));
        expect(canonicalizeMessage(call([input]))).not.toBe(canonicalizeMessage(call(input)));
      }),
    );
  });

  it('names a conversation by all that came before', () => {
    const hash = hashMessage({ role: 'user', content: 'yes' });
    const once = extendLineage('', hash);
    expect(extendLineage(once, hash)).not.toBe(once);
    expect(once).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('what stays of an absorbed message', () => {
  const reminder = (text: string) => ({ type: 'text', text: `<system-reminder>\n${text}\n</system-reminder>\n` });
  const CLAUDE_MD = reminder('Contents of /home/shop/docs/CLAUDE.md:\n\nWrite in French.');

  it('is the instructions of a user message, as they stand', () => {
    const content = [
      reminder('Result of calling the Read tool:\n# Environment\nYou have been invoked'),
      { ...CLAUDE_MD, ...mark },
      { type: 'text', text: '# Environment\nI typed this.' },
      { type: 'tool_result', tool_use_id: 't', content: CLAUDE_MD.text },
    ];
    expect(readPinned({ role: 'user', content })).toEqual({ reminders: [CLAUDE_MD.text], blocks: [] });
  });

  it('is a system message from its first standing part on, with changed tools and the directive', () => {
    const tools = 'The following deferred tools are now available via ToolSearch:\nWebFetch\n\nToday.';
    const removal = { type: 'tool_removal', name: 'WebFetch' };
    const content = [
      { type: 'text', text: `Task a1 is done.\n\n${tools}`, ...mark },
      { ...removal, ...mark },
    ];
    const output_config = { effort: 'low' };
    expect(readPinned({ role: 'system', content, output_config })).toEqual({
      reminders: [],
      blocks: [{ type: 'text', text: tools }, removal],
      directive: output_config,
    });
  });

  it('stays in parts, of which a later statement replaces only its own, and without what passes', () => {
    const parts = {
      planned: 'Plan mode is active. The user indicated that nothing is to be changed.',
      left: '## Exited Auto Mode\n\nYou have exited auto mode.',
      skills: 'The following skills are available for use with the Skill tool:\n\n- ship',
      exited: '## Exited Plan Mode\n\nYou have exited plan mode.',
      started: 'SessionStart hook success: The sprint ends on Friday.',
    };
    const budget = '<total_tokens>9 tokens left</total_tokens>';
    const hook = 'UserPromptSubmit hook additional context: on main\nclean';
    const contents = [
      [parts.planned, parts.left, budget],
      [parts.skills, parts.exited, hook, parts.started],
    ].map((all) => all.join('\n\n'));
    const pins = contents.map((content) => readPinned({ role: 'system', content }) as Pinned);
    const kept = (kinds: number) =>
      dropSuperseded(pins.map((pin) => asFormerly(pin, kinds))).map(({ blocks }) =>
        blocks.map((block) => (block as { text: string }).text),
      );
    expect(kept(4)).toEqual([[parts.left], [parts.skills, parts.exited, parts.started]]);
    // A plan of a former version replays what it sent.
    expect(kept(3)).toEqual(contents.map((content) => [content]));
  });

  it.each([
    ['an answer', { role: 'assistant', content: '# Environment\n' }],
    ['what is left of a budget', { role: 'system', content: '<total_tokens>15 tokens left</total_tokens>' }],
    ['a prompt', { role: 'user', content: 'Contents of a.md:\nx' }],
    [
      'a file',
      { role: 'system', content: 'Result:\n# Environment\nSet PORT.\nThe following tools are required:\nmake' },
    ],
    ['unknown content', { role: 'user', content: 7 }],
  ])('is nothing of %s', (_, message) => {
    expect(readPinned(message)).toBeNull();
  });
});
