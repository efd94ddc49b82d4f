import { readFileSync } from 'node:fs';
import https from 'node:https';
import { Proxy as MitmProxy } from 'http-mitm-proxy';

/** A process of its own: http-mitm-proxy as it comes, forwarding to the stand-in over kept-alive connections. */

const [, , upstreamPort, caFolder, upstreamCa] = process.argv;
const proxy = new MitmProxy();
const ca = readFileSync(upstreamCa as string, 'utf8');
const agent = new https.Agent({ keepAlive: true, ca });

// A client that closes its connection is no news.
proxy.onError(() => {});
proxy.onRequest((ctx, callback) => {
  Object.assign(ctx.proxyToServerRequestOptions ?? {}, { host: '127.0.0.1', port: Number(upstreamPort) });
  callback();
});
const started = { host: '127.0.0.1', port: 0, sslCaDir: caFolder as string, keepAlive: true, httpsAgent: agent };
proxy.listen(started, () => process.send?.({ port: proxy.httpPort }));
process.on('disconnect', () => process.exit(0));
