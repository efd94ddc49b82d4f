export interface EndpointRequest {
  readonly url: string;
  /** JSON to post; without it the address is read. */
  readonly body?: string;
  /** The header's value, '' for none. */
  readonly authorization: string;
  /** From the first byte sent to the last one received. */
  readonly timeoutMs: number;
  /** A longer answer is not read to its end. */
  readonly maxChars: number;
}

export type Replied =
  | { readonly how: 'answered'; readonly status: number; readonly body: string; readonly retryAfterMs: number }
  | { readonly how: 'timeout' | 'flooded' }
  /** `unreachable`: nothing was sent. `code` is the system's or TLS's, never a message with an address in it. */
  | { readonly how: 'unreachable' | 'broken'; readonly code: string };

const UNREACHABLE = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|.*CERT.*)$/;
const DEFAULT_REST_MS = 60_000;

/**
 * One JSON request. Follows no redirect: a key goes to the host that it was given for and to no other.
 *
 * @throws the signal's reason when it aborts, nothing else
 */
export async function askEndpoint(request: EndpointRequest, signal: AbortSignal): Promise<Replied> {
  const late = AbortSignal.timeout(request.timeoutMs);
  const over = new AbortController();
  try {
    const response = await fetch(request.url, {
      method: request.body === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(request.authorization === '' ? {} : { authorization: request.authorization }),
      },
      ...(request.body === undefined ? {} : { body: request.body }),
      signal: AbortSignal.any([signal, late, over.signal]),
    });
    const body = await readBody(response, request.maxChars);
    if (body === null) return { how: 'flooded' };
    const retryAfterMs = restOf(response.headers.get('retry-after'));
    return { how: 'answered', status: response.status, body, retryAfterMs };
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return { how: 'timeout' };
    const code = codeOf(error);
    return { how: UNREACHABLE.test(code) ? 'unreachable' : 'broken', code };
  } finally {
    over.abort();
  }
}

/** Null when it is longer than allowed. */
async function readBody(response: Response, maxChars: number): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > maxChars) return null;
  }
  return text + decoder.decode();
}

/** Seconds or a date; a minute where it is neither. */
function restOf(header: string | null): number {
  if (header === null || header.trim() === '') return DEFAULT_REST_MS;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : DEFAULT_REST_MS;
}

function codeOf(error: unknown): string {
  const cause = (error as { readonly cause?: unknown }).cause;
  const causes = cause instanceof AggregateError ? cause.errors : [cause, error];
  const codes = causes.map((each) => (each as { readonly code?: unknown } | undefined)?.code);
  return codes.find((code): code is string => typeof code === 'string') ?? 'no code';
}
