import http from 'node:http';

/**
 * The nonce of the guard behind `port`: together they are a daemon's identity. The token is shown to whoever listens,
 * so ask only for a port that the guard's own socket named.
 *
 * @returns null when nothing listens there, or what listens does not know our token
 */
export function portNonce(port: number, token: string, timeoutMs = 2_000): Promise<string | null> {
  return new Promise((resolve) => {
    const request = http.get({
      host: '127.0.0.1',
      port,
      path: '/.comet-cc/nonce',
      headers: { 'proxy-authorization': `Basic ${Buffer.from(`comet-cc:${token}`).toString('base64')}` },
      signal: AbortSignal.timeout(timeoutMs),
      agent: false,
    });
    request.on('error', () => resolve(null));
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => {
        if (chunks.length < 16) chunks.push(chunk);
      });
      response.on('end', () => {
        const body = Buffer.concat(chunks).toString('utf8').trim();
        resolve(response.statusCode === 200 && body !== '' ? body : null);
      });
      response.on('error', () => resolve(null));
    });
  });
}
