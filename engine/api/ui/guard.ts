/** The headers of a request to the dashboard that say who sent it. */
export interface Sender {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly site: string | undefined;
}

export interface Refusal {
  readonly status: 403 | 405;
  readonly message: string;
}

/**
 * Null where the request may come from the dashboard's own page or the address bar. The exact name stops DNS rebinding;
 * origin and site stop pages of other origins, those of other ports included.
 */
export function refuseSender({ method, host = '', origin, site }: Sender, port: number): Refusal | null {
  if (![`127.0.0.1:${port}`, `localhost:${port}`].includes(host))
    return { status: 403, message: 'not a name of this listener; comet-cc ui prints its address' };
  if (origin !== undefined && origin !== `http://${host}`) return { status: 403, message: 'not for other pages' };
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    return { status: 403, message: 'not for links of other pages; open the address itself' };
  return ['GET', 'HEAD', 'POST'].includes(method) ? null : { status: 405, message: 'GET, or POST with a JSON body' };
}
