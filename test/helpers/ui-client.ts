import http from 'node:http';

export interface UiReply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface UiRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: http.OutgoingHttpHeaders;
  readonly body?: string;
}

/** One request to the dashboard with exactly these headers, which `fetch` would not send. */
export function askUi(port: number, { method = 'GET', path = '/', headers = {}, body }: UiRequest): Promise<UiReply> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers, agent: false };
    const request = http.request(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    request.once('error', reject);
    request.end(body);
  });
}

/** What the dashboard streams, until `close`. */
export function followUi(port: number, cookie: string) {
  let text = '';
  const request = http.get({ host: '127.0.0.1', port, path: '/events', headers: { cookie }, agent: false });
  request.on('response', (response) => {
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('error', () => {});
  });
  request.on('error', () => {});
  return { text: () => text, close: () => request.destroy() };
}

/** A browser that opened the link of `comet-cc ui`. */
export async function signIn(url: string) {
  const { port, pathname, search } = new URL(url);
  const opened = await askUi(Number(port), { path: pathname + search });
  const cookie = String(opened.headers['set-cookie']).split(';')[0] as string;
  return browserWith(Number(port), cookie);
}

export async function browserWith(port: number, cookie: string) {
  const headers = { cookie, 'sec-fetch-site': 'same-origin' };
  const session = await askUi(port, { path: '/session', headers });
  const { csrf = '' } = JSON.parse(session.body) as { csrf?: string };
  return {
    port,
    cookie,
    csrf,
    get: (path: string) => askUi(port, { path, headers }),
    post: (operation: string, input: unknown, over: http.OutgoingHttpHeaders = {}) =>
      askUi(port, {
        method: 'POST',
        path: `/v1/${operation}`,
        headers: {
          ...{ ...headers, origin: `http://127.0.0.1:${port}`, 'x-comet-csrf': csrf },
          ...{ 'content-type': 'application/json', ...over },
        },
        body: JSON.stringify(input),
      }),
  };
}
