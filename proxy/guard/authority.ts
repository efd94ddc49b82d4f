import { isIPv4, isIPv6 } from 'node:net';

export interface Authority {
  /** Lower case; an IPv6 address without its brackets. */
  readonly host: string;
  readonly port: number;
}

const PORT = /^[1-9][0-9]{0,4}$/;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * Parses the target of a CONNECT. Accepts only `host:port` without scheme, user, path, zone or blanks.
 *
 * @returns null unless it is a host name, an IPv4 address or a bracketed IPv6 address, with a port from 1 to 65535
 * Source: RFC 9112 §3.2.3; a host whose last label is a number is an IPv4 address or invalid (WHATWG URL).
 */
export function parseAuthority(text: string): Authority | null {
  const colon = text.lastIndexOf(':');
  if (colon < 1 || text.length > 300) return null;
  const portText = text.slice(colon + 1);
  const port = Number(portText);
  if (!PORT.test(portText) || port > 65_535) return null;
  const host = parseHost(text.slice(0, colon).toLowerCase());
  return host === null ? null : { host, port };
}

function parseHost(text: string): string | null {
  if (text.startsWith('[')) {
    const inner = text.slice(1, -1);
    return text.endsWith(']') && !inner.includes('%') && isIPv6(inner) ? inner : null;
  }
  if (isIPv4(text)) return text;
  const labels = text.split('.');
  const last = labels.at(-1) as string;
  const isName = text.length <= 253 && labels.every((label) => LABEL.test(label)) && !NUMBER.test(last);
  return isName ? text : null;
}
