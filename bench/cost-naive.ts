import type { ClientRequest, Reply } from '../test/helpers/transcripts.ts';

type Json = Record<string, unknown>;

const KEPT_MESSAGES = 12;
const SUMMARY_CHARS = 6_000;

/**
 * The baseline: each request afresh keeps the first message and the newest ones and puts a summary of the rest into
 * the newest user message. Knows nothing of caches, tool pairs or signatures.
 */
export function summariseAndDrop(): {
  send(request: ClientRequest): Promise<Buffer>;
  seen(request: ClientRequest, reply: Reply): Promise<void>;
} {
  return {
    async send(request) {
      const messages = request.body['messages'] as Json[];
      if (messages.length <= KEPT_MESSAGES + 2) return request.bytes;
      const cut = messages.length - KEPT_MESSAGES;
      const kept = structuredClone([messages[0], ...messages.slice(cut)]) as Json[];
      const newest = kept.findLast((message) => message['role'] === 'user') as Json;
      const { content } = newest;
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Json[]);
      newest['content'] = [...blocks, { type: 'text', text: `Summary so far:\n${getSummary(messages.slice(1, cut))}` }];
      return Buffer.from(JSON.stringify({ ...request.body, messages: kept }));
    },
    seen: async () => {},
  };
}

/** First sentence of what each side said, the newest that fit. */
function getSummary(messages: readonly Json[]): string {
  const lines = messages.flatMap(({ role, content }) => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Json[]);
    return blocks.flatMap((block) =>
      block['type'] === 'text'
        ? [
            `${role}: ${String(block['text'])
              .split(/(?<=\.)\s/)[0]
              ?.slice(0, 160)}`,
          ]
        : [],
    );
  });
  return lines.join('\n').slice(-SUMMARY_CHARS);
}
