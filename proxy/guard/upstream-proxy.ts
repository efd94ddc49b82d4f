import { BlockList, isIP } from 'node:net';
import type { Authority } from './authority.ts';

/** The proxy that the user's own network asks for between us and the world. */
export interface UpstreamProxy extends Authority {
  /** Whether the proxy itself is spoken to over TLS. */
  readonly secure: boolean;
  /** Value of `proxy-authorization`; null without credentials. Never to be logged. */
  readonly authorization: string | null;
}

/** Which proxy leads to a target; null means straight. */
export type Route = (target: Authority) => UpstreamProxy | null;

/**
 * @param url  `[http[s]://][user:password@]host[:port]`; an http proxy without a port is on 80, an https one on 443
 * @returns    null for another scheme (SOCKS) or no URL
 */
export function parseUpstreamProxy(url: string): UpstreamProxy | null {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `http://${url}`;
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port, username, password } = new URL(text);
  if ((protocol !== 'http:' && protocol !== 'https:') || hostname === '') return null;
  const secure = protocol === 'https:';
  const user = `${decoded(username)}:${decoded(password)}`;
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port) || (secure ? 443 : 80),
    secure,
    authorization: user === ':' ? null : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}

/** @param url  as for `parseNextHop`; '' and whatever is no proxy of a known kind mean straight */
export function createRoute(url: string, noProxy: string): Route {
  const hop = url === '' ? null : parseUpstreamProxy(url);
  return (target) => (hop === null || bypassesProxy(noProxy, target) ? null : hop);
}

/**
 * Whether an entry of `NO_PROXY` (comma or blank between them) names the target: `*`, a name with all below it, an
 * address, a range as in 10.0.0.0/8; any of them but the range with a port.
 */
export function bypassesProxy(noProxy: string, { host, port }: Authority): boolean {
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => entry !== '' && names(entry, host, port));
}

/** Without credentials, for people and logs. */
export function formatProxy({ host, port, secure }: UpstreamProxy): string {
  return `${secure ? 'https' : 'http'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function names(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return inRange(entry, host);
  if (entry.replace(/^\[|\]$/g, '') === host) return true;
  const [, bare = entry, only] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (only !== undefined && Number(only) !== port) return false;
  const name = bare.replace(/^\*?\./, '').replace(/^\[(.*)\]$/, '$1');
  return name !== '' && (host === name || (isIP(host) === 0 && host.endsWith(`.${name}`)));
}

function inRange(entry: string, host: string): boolean {
  const [network = '', bits = ''] = entry.split('/');
  const [family, most] = isIP(network) === 6 ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
  if (isIP(network) === 0 || isIP(network) !== isIP(host) || !/^\d{1,3}$/.test(bits) || Number(bits) > most)
    return false;
  const range = new BlockList();
  range.addSubnet(network, Number(bits), family);
  return range.check(host, family);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign in a password is meant as it stands.
    return text;
  }
}
