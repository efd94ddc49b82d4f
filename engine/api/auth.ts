import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Who may call a listener. Another origin is never allowed: there are no CORS headers. */
export interface AdmissionRule {
  /** Allowed `Host` values, port included: protects against DNS rebinding. */
  readonly hosts: readonly string[];
  /** `Origin` of our own pages; empty where no browser may call. */
  readonly origins: readonly string[];
  /** The bearer token; null where file permissions decide who may connect. */
  readonly token: string | null;
}

/** For the socket, which only this user can open and no browser uses. */
export const SOCKET_RULE: AdmissionRule = { hosts: ['localhost'], origins: [], token: null };

/** For a listener on a loopback port, which any program and any web page of this machine can reach. */
export function portRule(port: number, token: string): AdmissionRule {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  return { hosts, origins: hosts.map((host) => `http://${host}`), token };
}

export interface Refused {
  readonly status: 401 | 403 | 405 | 415;
  readonly message: string;
}

/** Null where the request is allowed. It must have a form that no page of another origin can send without preflight. */
export function refusal(
  rule: AdmissionRule,
  { method, headers }: { readonly method: string; readonly headers: IncomingHttpHeaders },
): Refused | null {
  const { host, origin, authorization } = headers;
  if (!rule.hosts.includes(host ?? '')) return { status: 403, message: 'not a name of this listener' };
  if (origin !== undefined && !rule.origins.includes(origin)) return { status: 403, message: 'another origin' };
  const site = headers['sec-fetch-site'];
  if (site !== undefined && (rule.origins.length === 0 || site !== 'same-origin')) {
    return { status: 403, message: 'another site' };
  }
  if (rule.token !== null && !isSame(authorization ?? '', `Bearer ${rule.token}`)) {
    return { status: 401, message: 'the token is missing or wrong' };
  }
  if (method !== 'POST') return { status: 405, message: 'POST with a JSON body' };
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  return type === 'application/json' ? null : { status: 415, message: 'POST with a JSON body' };
}

/** Compares in constant time. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
