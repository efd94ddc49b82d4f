/** Bytes of a whole streamed message that says `text`. */
export function sseMessage(text: string): Buffer {
  const events = [
    {
      type: 'message_start',
      message: { id: 'msg_t', model: 'claude-test', content: [], usage: { input_tokens: 3, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    { type: 'something_new', with: '€ 🙂' },
    ...[...text].map((part) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: part },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
  return Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
}
