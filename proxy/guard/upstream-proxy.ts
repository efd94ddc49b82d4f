import net, { BlockList, isIP } from 'node:net';
import { CometError } from '../../common/errors.ts';
import { decodePercent } from '../../common/text.ts';
import { type Authority, sendConnect, withConnectTimeout } from './tunnel.ts';

/** The user's own proxy between comet-cc and the internet. */
interface UpstreamProxy extends Authority {
  /** The connection to the proxy itself uses TLS. */
  readonly secure: boolean;
  /** Value of `proxy-authorization`; null without credentials. Never log it. */
  readonly authorization: string | null;
}

/** The proxy for a target; null connects directly. */
export type Route = (target: Authority) => UpstreamProxy | null;

/**
 * @param url  `[http[s]://][user:password@]host[:port]`; an http proxy without a port is on 80, an https one on 443
 * @returns    null for another scheme (SOCKS) or an invalid URL
 */
export function parseUpstreamProxy(url: string): UpstreamProxy | null {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `http://${url}`;
  // Signs of a password that would end the host.
  const login = whole.slice(whole.indexOf('//') + 2, Math.max(0, whole.lastIndexOf('@')));
  const text = whole.replace(login, () => login.replace(/[#?/]/g, encodeURIComponent));
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port, username, password } = new URL(text);
  if ((protocol !== 'http:' && protocol !== 'https:') || hostname === '') return null;
  const secure = protocol === 'https:';
  // A stray percent sign in a password is literal.
  const user = [username, password].map((part) => decodePercent(part) ?? part).join(':');
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port) || (secure ? 443 : 80),
    secure,
    authorization: user === ':' ? null : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}

/** @param url  as for `parseUpstreamProxy`; '' and unsupported proxies connect directly */
export function createRoute(url: string, noProxy: string): Route {
  const proxy = url === '' ? null : parseUpstreamProxy(url);
  return (target) => (proxy === null || bypassesProxy(noProxy, target) ? null : proxy);
}

/** `noProxy`: `*`, domains with their subdomains, addresses or ranges, by commas or blanks; all but ranges with a port. */
export function bypassesProxy(noProxy: string, { host, port }: Authority): boolean {
  const entries = noProxy.toLowerCase().split(/[\s,]+/);
  return entries.some((entry) => entry !== '' && matchesEntry(entry, host, port));
}

/** Without credentials. */
export function formatProxy({ host, port, secure }: UpstreamProxy): string {
  return `${secure ? 'https' : 'http'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function matchesEntry(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return isInRange(entry, host);
  if (entry.replace(/^\[|\]$/g, '') === host) return true;
  const [, bare = entry, only] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (only !== undefined && Number(only) !== port) return false;
  const name = bare.replace(/^\*?\./, '').replace(/^\[(.*)\]$/, '$1');
  return name !== '' && (host === name || (isIP(host) === 0 && host.endsWith(`.${name}`)));
}

function isInRange(entry: string, host: string): boolean {
  const [network = '', bits = ''] = entry.split('/');
  const [family, most] = isIP(network) === 6 ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
  if (isIP(network) === 0 || isIP(network) !== isIP(host) || !/^\d{1,3}$/.test(bits) || Number(bits) > most)
    return false;
  const range = new BlockList();
  range.addSubnet(network, Number(bits), family);
  return range.check(host, family);
}

/**
 * A connection to `target` through the user's own proxy, whose answer may take four times as long as to connect to it.
 * @throws CometError with the proxy's answer: `upstream_failed` where it refuses this host, else `upstream_proxy_failed`
 */
export async function connectViaProxy(proxy: UpstreamProxy, target: Authority, timeoutMs: number): Promise<net.Socket> {
  const authority = `${isIP(target.host) === 6 ? `[${target.host}]` : target.host}:${target.port}`;
  const headers: Record<string, string> =
    proxy.authorization === null ? {} : { 'proxy-authorization': proxy.authorization };
  const socket = openSocket(proxy, timeoutMs);
  socket.once('connect', () => socket.setTimeout(4 * timeoutMs));
  const answer = await sendConnect(authority, headers, () => socket).catch((cause: unknown) => {
    throw new CometError('upstream_proxy_failed', `the proxy ${formatProxy(proxy)} ${describeError(cause)}`, { cause });
  });
  if (answer.status >= 200 && answer.status < 300) return answer.socket;
  answer.socket.destroy();
  const { status, reason } = answer;
  const said = `(${`${status} ${reason.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 100)}`.trim()})`;
  const isAsking = proxy.authorization === null;
  const refusal = isAsking
    ? `asks for a name and password ${said}: put them into HTTPS_PROXY, before its host`
    : `does not accept the name and password of HTTPS_PROXY ${said}`;
  const what = status === 407 ? refusal : `does not connect to ${authority} ${said}`;
  const code = status === 407 ? 'upstream_proxy_failed' : 'upstream_failed';
  throw new CometError(code, `the proxy ${formatProxy(proxy)} ${what}`);
}

function openSocket(proxy: UpstreamProxy, timeoutMs: number): net.Socket {
  const options = { host: proxy.host, port: proxy.port, allowHalfOpen: true, autoSelectFamilyAttemptTimeout: 1_000 };
  if (!proxy.secure) return withConnectTimeout(net.connect({ ...options, noDelay: true }), proxy, timeoutMs);
  // Loaded only when needed, to keep the guard small.
  const tls = process.getBuiltinModule('node:tls');
  const servername = isIP(proxy.host) === 0 ? proxy.host : '';
  return withConnectTimeout(tls.connect({ ...options, servername, ALPNProtocols: ['http/1.1'] }), proxy, timeoutMs);
}

const NOT_NOW = 'shows a certificate that is not valid now; is the clock of this machine right?';
const HINTS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: NOT_NOW,
  CERT_NOT_YET_VALID: NOT_NOW,
  ECONNREFUSED: 'refuses connections; is its address right, and the network up?',
  ENOTFOUND: 'has no address; is the network up?',
  EAI_AGAIN: 'has no address; is the network up?',
  ETIMEDOUT: 'did not accept a connection in time; is the network up?',
  UND_ERR_CONNECT_TIMEOUT: 'did not accept a connection in time; is the network up?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS; is its address right?',
};

/** Why no connection came about, or one was lost, for the user. */
export function describeError(cause: unknown): string {
  if (cause instanceof CometError) return `cannot be reached: ${cause.message}`;
  const code = String(Object(cause).code ?? 'no answer');
  const isTls = /CERT|SELF_SIGNED|ERR_TLS|ERR_SSL|EPROTO|UNABLE_TO/.test(code);
  const hint = isTls
    ? 'shows a certificate that is not trusted: name its CA in NODE_EXTRA_CA_CERTS, then comet-cc restart'
    : 'closed the connection';
  return `${HINTS[code] ?? hint} (${code})`;
}
