export interface SseEvent {
  /** `message` by default. */
  readonly event: string;
  readonly data: string;
}

export interface SseDecoder {
  /** The events completed by these bytes. */
  push(bytes: Uint8Array): SseEvent[];
}

/**
 * Decodes events from bytes split at any position.
 *
 * Source: WHATWG HTML §9.2.6. Drops `id`, `retry`, unknown fields, events without data and an incomplete last event.
 */
export function createSseDecoder(): SseDecoder {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let afterCr = false;
  let event = '';
  let data: string[] = [];

  function addLine(line: string, events: SseEvent[]): void {
    if (line === '') {
      if (data.length > 0) events.push({ event: event || 'message', data: data.join('\n') });
      event = '';
      data = [];
      return;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'event') event = value;
    else if (name === 'data') data.push(value);
  }

  return {
    push(bytes) {
      const events: SseEvent[] = [];
      let text = decoder.decode(bytes, { stream: true });
      if (text === '') return events;
      if (afterCr && text[0] === '\n') text = text.slice(1);
      afterCr = text.endsWith('\r');
      const lines = text.split(/\r\n|\n|\r/);
      const open = lines.pop() as string;
      for (const line of lines) {
        addLine(parts.length === 0 ? line : parts.join('') + line, events);
        parts = [];
      }
      if (open !== '') parts.push(open);
      return events;
    },
  };
}
