/** Alternating names and values, as received. */
export type RawHeaders = readonly string[];

/** Marks requests of comet-cc's own `claude -p` children; never sent upstream. */
export const CHILD_HEADER = 'x-comet-cc-child';

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
]);
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'cookie', 'proxy-authorization']);
const RESPONSE_HEADERS = /^(anthropic-ratelimit-.*|retry-after|request-id)$/;

/** The values of one header, in order. */
export function headerValues(raw: RawHeaders, name: string): string[] {
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);
}

/**
 * The end-to-end headers, with order, case and duplicates kept.
 *
 * Source: RFC 9110 §7.6.1.
 */
export function endToEndHeaders(raw: RawHeaders, drop: readonly string[] = []): string[] {
  const connectionOptions = headerValues(raw, 'connection').flatMap((value) => value.toLowerCase().split(','));
  const dropped = new Set([...drop, ...connectionOptions.map((name) => name.trim())]);
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    const lower = name.toLowerCase();
    if (!HOP_BY_HOP.has(lower) && !dropped.has(lower)) kept.push(name, raw[at + 1] as string);
  }
  return kept;
}

/** Lower-case names, duplicates joined, without credentials. */
export function stripCredentials(raw: RawHeaders): Record<string, string> {
  return collect(raw, (name) => !CREDENTIALS.has(name));
}

/** Rate limits, `retry-after` and `request-id`. */
export function selectResponseHeaders(raw: RawHeaders): Record<string, string> {
  return collect(raw, (name) => RESPONSE_HEADERS.test(name));
}

function collect(raw: RawHeaders, wanted: (name: string) => boolean): Record<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    if (!wanted(name)) continue;
    const earlier = found.get(name);
    found.set(name, earlier === undefined ? (raw[at + 1] as string) : `${earlier}, ${raw[at + 1]}`);
  }
  return Object.fromEntries(found);
}
