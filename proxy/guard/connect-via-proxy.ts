import net, { isIP } from 'node:net';
import { CometError } from '../../common/errors.ts';
import type { Authority } from './authority.ts';
import { sendConnect, withConnectTimeout } from './tunnel.ts';
import { formatProxy, type UpstreamProxy } from './upstream-proxy.ts';

/**
 * A connection to `target` through the user's own proxy.
 *
 * @throws CometError `upstream_proxy_failed` with the proxy's answer
 */
export async function connectViaProxy(proxy: UpstreamProxy, target: Authority, timeoutMs: number): Promise<net.Socket> {
  const authority = `${isIP(target.host) === 6 ? `[${target.host}]` : target.host}:${target.port}`;
  const headers: Record<string, string> =
    proxy.authorization === null ? {} : { 'proxy-authorization': proxy.authorization };
  const answer = await sendConnect(authority, headers, () => openSocket(proxy, timeoutMs)).catch((cause: unknown) => {
    throw new CometError('upstream_proxy_failed', `the proxy ${formatProxy(proxy)} ${describeError(cause)}`, { cause });
  });
  if (answer.status >= 200 && answer.status < 300) return answer.socket;
  answer.socket.destroy();
  throw new CometError(
    'upstream_proxy_failed',
    `the proxy ${formatProxy(proxy)} ${describeRefusal(proxy, answer, authority)}`,
  );
}

function openSocket(proxy: UpstreamProxy, timeoutMs: number): net.Socket {
  const options = { host: proxy.host, port: proxy.port, allowHalfOpen: true, autoSelectFamilyAttemptTimeout: 1_000 };
  if (!proxy.secure) return withConnectTimeout(net.connect({ ...options, noDelay: true }), proxy, timeoutMs);
  // Loaded only when needed, to keep the guard small.
  const tls = process.getBuiltinModule('node:tls');
  const servername = isIP(proxy.host) === 0 ? proxy.host : '';
  return withConnectTimeout(tls.connect({ ...options, servername, ALPNProtocols: ['http/1.1'] }), proxy, timeoutMs);
}

function describeRefusal(
  proxy: UpstreamProxy,
  { status, reason }: { status: number; reason: string },
  authority: string,
): string {
  const answer = `${status} ${escapeText(reason)}`.trim();
  if (status === 407 && proxy.authorization === null) {
    return `asks for a name and password (${answer}): put them into HTTPS_PROXY, before its host`;
  }
  if (status === 407) return `does not accept the name and password of HTTPS_PROXY (${answer})`;
  return `does not connect to ${authority} (${answer})`;
}

function describeError(cause: unknown): string {
  const code = String(Object(cause).code ?? 'no answer');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `has no address; is the network up? (${code})`;
  if (code === 'ECONNREFUSED') return `refuses connections; is the network up? (${code})`;
  if (/CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO/.test(code)) {
    return `shows a certificate that is not trusted: name its CA in NODE_EXTRA_CA_CERTS (${code})`;
  }
  return `did not answer (${code})`;
}

function escapeText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 100);
}
