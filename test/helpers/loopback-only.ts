import net from 'node:net';

// A connection to any host but this machine throws at its call. Names below `invalid` never resolve (RFC 6761).
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost|[a-z-]+\.invalid)$/;
const GUARDED = Symbol.for('comet-cc loopback only');
const original = net.Socket.prototype.connect;

// Tests without isolation run this file once each in the same thread.
if (!(GUARDED in original)) {
  const connect = function connect(this: net.Socket, ...args: unknown[]) {
    const first = Array.isArray(args[0]) ? args[0][0] : args[0];
    const options = (typeof first === 'object' ? first : {}) as { host?: string; path?: string };
    const host = typeof first === 'object' ? options.host : args[1];
    if (options.path === undefined && typeof host === 'string' && !LOOPBACK.test(host)) {
      throw new Error(`a test tried to reach ${host}`);
    }
    return Reflect.apply(original, this, args) as net.Socket;
  } as typeof original;
  net.Socket.prototype.connect = Object.assign(connect, { [GUARDED]: true });
}
