import fc from 'fast-check';
import { expect, it } from 'vitest';
import { wellKnownSecrets } from '../../../../bench/redact/secrets.ts';
import { redactTurn } from '../../../../memory/ingest/redact-turn.ts';
import { createAssembler, createSseDecoder } from '../../../../proxy/http/response.ts';
import { createRedactor } from '../../../../redact/index.ts';
import { talk } from '../../../helpers/turns.ts';

const redactor = createRedactor({ markKey: Buffer.alloc(32, 7) });
const planted = wellKnownSecrets(40, 72);

/** The stream of an answer: a text, and a tool call with the same text in its input, each cut where `cuts` say. */
function streamed(text: string, cuts: readonly number[]): Buffer {
  const event = (data: { type: string }): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const delta = (index: number, part: object): string =>
    event({ type: 'content_block_delta', index, delta: part } as { type: string });
  const block = (index: number, content_block: object, deltas: readonly string[]): string =>
    [
      event({ type: 'content_block_start', index, content_block } as { type: string }),
      ...deltas,
      event({ type: 'content_block_stop', index } as { type: string }),
    ].join('');
  const input = JSON.stringify({ command: `echo '${text}'` });
  const said = pieces(text, cuts).map((piece) => delta(0, { type: 'text_delta', text: piece }));
  const called = pieces(input, cuts).map((piece) => delta(1, { type: 'input_json_delta', partial_json: piece }));
  const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], model: 'm', usage: {} };
  return Buffer.from(
    [
      event({ type: 'message_start', message } as { type: string }),
      block(0, { type: 'text', text: '' }, said),
      block(1, { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }, called),
      event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: {} } as { type: string }),
      event({ type: 'message_stop' }),
    ].join(''),
  );
}

function pieces(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set([0, ...cuts.map((cut) => cut % text.length), text.length])].toSorted((a, b) => a - b);
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

it('a secret split over deltas and socket reads is not stored', async () => {
  const cuts = fc.array(fc.nat({ max: 4_000 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...planted), cuts, cuts, async ({ secret, text }, deltas, reads) => {
      const assembler = createAssembler();
      const decoder = createSseDecoder();
      const bytes = streamed(text, deltas);
      const at = [...new Set([0, ...reads.map((cut) => cut % bytes.length), bytes.length])].toSorted((a, b) => a - b);
      for (const [index, end] of at.slice(1).entries()) {
        for (const event of decoder.push(bytes.subarray(at[index], end))) assembler.push(event);
      }
      const { message, complete } = assembler.result();
      expect(complete).toBe(true);
      const content = JSON.stringify(message?.content);
      expect(JSON.parse(content)).toMatchObject([{ text }, { input: { command: `echo '${text}'` } }]);
      const captured = talk('prompt', 'answer');
      const last = captured.messages.at(-1);
      const turn = { ...captured, messages: [{ role: 'assistant', content, sha256: last?.sha256 ?? '' }] };
      const kept = await redactTurn(turn as typeof captured, redactor);
      expect(kept.redacted).toBe(true);
      expect(JSON.stringify(kept)).not.toContain(secret);
      expect(JSON.stringify(kept.messages.map((each) => JSON.parse(each.content)))).not.toContain(secret);
    }),
    { numRuns: 200 },
  );
});
