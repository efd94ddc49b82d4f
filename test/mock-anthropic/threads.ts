import { canonical, getBlocks, isObject, type Json } from './json.ts';
import { invalid, type Refusal } from './refusal.ts';

/**
 * Conversations that the API holds for requests with `thread`, by the id of their newest answer (platform.claude.com,
 * message threads, Sep 2026). They do not expire. The page says that a continued request has no system prompt and no
 * tools; Claude Code 2.1.332 sends both, and expects a refusal where they differ from those of the thread.
 */
export interface Threads {
  /** The whole conversation that a request stands for; the body itself where it is whole. */
  whole(body: Json): { readonly body: Json } | { readonly refusal: Refusal };
  /** Keeps what was asked and answered, where the request asks for that. */
  keep(body: Json, id: string, answer: readonly Json[]): void;
}

export function createThreads(): Threads {
  const kept = new Map<string, Json>();
  return {
    whole(body) {
      const { thread } = body;
      if (!isObject(thread) || thread.type !== 'continue') return { body };
      const id = String(thread.previous_message_id);
      const before = kept.get(id);
      if (before === undefined) return { refusal: refusal(404, 'thread_not_found') };
      const differs = ['system', 'tools'].some(
        (name) => body[name] !== undefined && fingerprint(body[name]) !== fingerprint(before[name]),
      );
      if (differs) return { refusal: refusal(400, 'thread_fingerprint_mismatch') };
      kept.delete(id);
      return { body: { ...body, ...before, messages: [...getMessages(before), ...getMessages(body)] } };
    },
    keep(body, id, answer) {
      if (!isObject(body.thread)) return;
      // Breakpoints of system prompt and tools count again in each request, those of earlier messages do not.
      const unmarked = JSON.stringify(getMessages(body), (name, value) =>
        name === 'cache_control' ? undefined : value,
      );
      const messages = [...(JSON.parse(unmarked) as unknown[]), { role: 'assistant', content: answer }];
      kept.set(id, { system: body.system, tools: body.tools, messages });
    },
  };
}

function refusal(status: 400 | 404, code: string): Refusal {
  const type = status === 404 ? 'not_found_error' : invalid('').type;
  return { status, type, message: `thread: ${code}`, details: { error_code: code } };
}

/** Without the attribution, which differs in each request. */
function fingerprint(value: unknown): string {
  return canonical(getBlocks(value).filter(({ text }) => !String(text).startsWith('x-anthropic-billing-header')));
}

function getMessages({ messages }: Json): readonly unknown[] {
  return Array.isArray(messages) ? messages : [];
}
