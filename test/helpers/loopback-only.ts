import net from 'node:net';

// No test may reach beyond this machine: a connection to any other host throws where it is made. A name below
// `invalid` is nobody's (RFC 6761).
const loopback = /^(127\.\d+\.\d+\.\d+|::1|localhost|[a-z-]+\.invalid)$/;
const original = net.Socket.prototype.connect;

net.Socket.prototype.connect = function connect(this: net.Socket, ...args: unknown[]) {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  const options = (typeof first === 'object' ? first : {}) as { host?: string; path?: string };
  const host = typeof first === 'object' ? options.host : args[1];
  if (options.path === undefined && typeof host === 'string' && !loopback.test(host)) {
    throw new Error(`a test tried to reach ${host}`);
  }
  return Reflect.apply(original, this, args) as net.Socket;
} as typeof original;
