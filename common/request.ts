import net from 'node:net';

/** User name that marks our proxy URLs. */
export const PROXY_USER = 'comet-cc';

/** Whether a proxy URL is ours, of this home or another. */
export function isOurProxy(url: string | undefined): boolean {
  if (url === undefined || !URL.canParse(url)) return false;
  const { username, hostname } = new URL(url);
  return username === PROXY_USER && hostname === '127.0.0.1';
}

/** The head of a response; the body follows until the end of the connection. */
const HEAD = /^HTTP\/1\.[01] \d{3} /;

/**
 * `POST` with a JSON body to the engine's API, over its socket or pipe. Not on `node:http`, which takes as long to load as
 * a whole hook takes to run. HTTP/1.0, so that a response is neither chunked nor kept alive.
 * @returns the body of the response, for any status
 * @throws the error of the connection or `signal`, or when there is no complete response
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
      else reject(new Error('the connection ended without a response'));
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
