import net from 'node:net';

/** What an answer begins with; what follows is its body, to the end of the connection. */
const HEAD = /^HTTP\/1\.[01] \d{3} /;

/**
 * `POST` with a JSON body to the engine's API, over its socket or pipe. Written by hand because `node:http` takes as
 * long to load as all else that a hook does; HTTP/1.0, so that an answer is neither in chunks nor kept alive.
 *
 * @returns the body of the answer, whatever its status
 * @throws what the connection or `signal` ended with, or where what came is no answer
 */
export function postLocal(
  address: string,
  {
    path,
    body,
    signal,
    onSent,
  }: { readonly path: string; readonly body: string; readonly signal: AbortSignal; readonly onSent?: () => void },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ path: address, signal });
    const chunks: Buffer[] = [];
    connection.on('data', (chunk) => chunks.push(chunk));
    connection.once('error', reject);
    connection.once('close', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const end = text.indexOf('\r\n\r\n');
      if (HEAD.test(text) && end > 0) resolve(text.slice(end + 4));
      else reject(new Error('the connection ended without an answer'));
    });
    const head = [
      `POST ${path} HTTP/1.0`,
      'host: localhost',
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ].join('\r\n');
    connection.write(`${head}\r\n\r\n${body}`, () => onSent?.());
  });
}
