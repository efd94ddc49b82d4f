/** Names and values in turn, as `rawHeaders` has them. */
type Raw = readonly string[];

/** Tells our own `claude -p` children's requests; stripped before they go upstream. */
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
const OF_INTEREST = /^(anthropic-ratelimit-.*|retry-after|request-id)$/;

/** Values of one header, in order. */
export function headerValues(raw: Raw, name: string): string[] {
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name);
}

/**
 * What goes on to the next hop, order, case and duplicates kept.
 *
 * Source: RFC 9110 §7.6.1; `Expect` is answered by our own server, so it ends here too.
 */
export function endToEndHeaders(raw: Raw, drop: readonly string[] = []): string[] {
  const named = headerValues(raw, 'connection').flatMap((value) => value.toLowerCase().split(','));
  const dropped = new Set([...drop, ...named.map((name) => name.trim())]);
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    const lower = name.toLowerCase();
    if (!HOP_BY_HOP.has(lower) && !dropped.has(lower)) kept.push(name, raw[at + 1] as string);
  }
  return kept;
}

/** Lower-case names; duplicates joined; nothing that carries a credential. */
export function stripCredentials(raw: Raw): Record<string, string> {
  return collect(raw, (name) => !CREDENTIALS.has(name));
}

/** Rate limits, `retry-after` and `request-id` of a response. */
export function selectResponseHeaders(raw: Raw): Record<string, string> {
  return collect(raw, (name) => OF_INTEREST.test(name));
}

function collect(raw: Raw, wanted: (name: string) => boolean): Record<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase();
    if (!wanted(name)) continue;
    const before = found.get(name);
    found.set(name, before === undefined ? (raw[at + 1] as string) : `${before}, ${raw[at + 1]}`);
  }
  return Object.fromEntries(found);
}
