import net, { isIP } from 'node:net';
import { CometError } from '../../common/errors.ts';
import type { Authority } from './authority.ts';
import { sendConnect, withConnectTimeout } from './tunnel.ts';
import { formatProxy, type UpstreamProxy } from './upstream-proxy.ts';

/**
 * A connection to `target` through the user's own proxy.
 *
 * @throws CometError `upstream_proxy_failed`, saying in words what the proxy answered
 */
export async function connectViaProxy(hop: UpstreamProxy, target: Authority, timeoutMs: number): Promise<net.Socket> {
  const authority = `${isIP(target.host) === 6 ? `[${target.host}]` : target.host}:${target.port}`;
  const headers: Record<string, string> =
    hop.authorization === null ? {} : { 'proxy-authorization': hop.authorization };
  const answer = await sendConnect(authority, headers, () => open(hop, timeoutMs)).catch((cause: unknown) => {
    throw new CometError('upstream_proxy_failed', `the proxy ${formatProxy(hop)} ${whyLost(cause)}`, { cause });
  });
  if (answer.status >= 200 && answer.status < 300) return answer.socket;
  answer.socket.destroy();
  throw new CometError('upstream_proxy_failed', `the proxy ${formatProxy(hop)} ${whyRefused(hop, answer, authority)}`);
}

function open(hop: UpstreamProxy, timeoutMs: number): net.Socket {
  const options = { host: hop.host, port: hop.port, allowHalfOpen: true, autoSelectFamilyAttemptTimeout: 1_000 };
  if (!hop.secure) return withConnectTimeout(net.connect({ ...options, noDelay: true }), hop, timeoutMs);
  // Loaded only by those whose proxy needs it: the guard has to stay small.
  const tls = process.getBuiltinModule('node:tls');
  const servername = isIP(hop.host) === 0 ? hop.host : '';
  return withConnectTimeout(tls.connect({ ...options, servername, ALPNProtocols: ['http/1.1'] }), hop, timeoutMs);
}

function whyRefused(
  hop: UpstreamProxy,
  { status, reason }: { status: number; reason: string },
  authority: string,
): string {
  const said = `${status} ${printable(reason)}`.trim();
  if (status === 407 && hop.authorization === null) {
    return `asks for a name and password (${said}): put them into HTTPS_PROXY, before its host`;
  }
  if (status === 407) return `does not accept the name and password of HTTPS_PROXY (${said})`;
  return `does not connect to ${authority} (${said})`;
}

function whyLost(cause: unknown): string {
  const code = String(Object(cause).code ?? 'no answer');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `has no address; is the network up? (${code})`;
  if (code === 'ECONNREFUSED') return `refuses connections; is the network up? (${code})`;
  if (/CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO/.test(code)) {
    return `shows a certificate that is not trusted: name its CA in NODE_EXTRA_CA_CERTS (${code})`;
  }
  return `did not answer (${code})`;
}

function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 100);
}
