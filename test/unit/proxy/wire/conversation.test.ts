import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConversationCache, parseConversation } from '../../../../proxy/wire/conversation.ts';

const text = fc.string({ unit: 'binary', maxLength: 40 });
const message = fc.record({
  role: fc.constantFrom('user', 'assistant', 'system'),
  content: fc.oneof(text, fc.array(fc.record({ type: fc.constantFrom('text', 'thinking'), text }), { maxLength: 3 })),
});
const messages = fc.array(message, { minLength: 1, maxLength: 8 });
const head = fc.dictionary(fc.constantFrom('model', 'max_tokens', 'metadata', 'stream'), fc.jsonValue());
const tail = fc.dictionary(fc.constantFrom('system', 'tools', 'thinking', 'messages2'), fc.jsonValue());

const bodyOf = (before: object, list: readonly unknown[], after: object): string =>
  JSON.stringify({ ...before, messages: list, ...after });

/** What was seen before must not change what is seen. */
function expectSame(bodies: readonly Buffer[]): void {
  const cache = new ConversationCache();
  for (const body of bodies) {
    const [seen, alone] = [parseConversation(body, cache), parseConversation(body, new ConversationCache())];
    // Byte by byte, megabytes would take minutes.
    expect({ ...seen, body: seen?.body === body }).toEqual({ ...alone, body: alone?.body === body });
  }
}

describe('a view of a request', () => {
  it('is the same whichever requests of the conversation were seen before it', () => {
    fc.assert(
      fc.property(head, messages, messages, tail, tail, fc.nat(8), (before, list, more, after, later, kept) => {
        const first = bodyOf(before, list, after);
        const next = bodyOf(before, [...list.slice(0, kept), ...more], later);
        expectSame([first, next, first, bodyOf({}, [...list, ...more], after)].map((body) => Buffer.from(body)));
      }),
    );
  });

  it('is the same for bytes that were damaged or cut after what is known', () => {
    fc.assert(
      fc.property(
        head,
        messages,
        tail,
        fc.nat(),
        fc.constantFrom(...'"\\{}[],: 0a'),
        (before, list, after, at, byte) => {
          const body = bodyOf(before, list, after);
          const damaged = Buffer.from(body);
          damaged.write(byte, at % damaged.length);
          expectSame([
            Buffer.from(body),
            damaged,
            Buffer.from(body).subarray(0, at % damaged.length),
            Buffer.from(body),
          ]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('separates conversations with the same beginning, and works without one that is too large to keep', () => {
    const said = (...texts: string[]): Buffer =>
      Buffer.from(
        bodyOf(
          { model: 'm' },
          texts.map((content) => ({ role: 'user', content })),
          {},
        ),
      );
    const large = 'x'.repeat(9 * 1024 * 1024);
    expectSame([
      said('a', 'b'),
      said('a', 'c'),
      said('b'),
      said('a', 'b', 'd'),
      said('a', large),
      said('a', large, 'e'),
    ]);
  });
});
