/** The headers of a request to the dashboard that say who sent it. */
export interface Sender {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly site: string | undefined;
}

/**
 * Null where the request may come from the dashboard's own page or the address bar. The exact name stops DNS rebinding;
 * origin and site stop pages of other origins, those of other ports included.
 */
export function refuseSender({ method, host = '', origin, site }: Sender, port: number) {
  if (![`127.0.0.1:${port}`, `localhost:${port}`].includes(host))
    return { status: 403, message: 'not a name of this listener; comet-cc ui prints its address' } as const;
  if (origin !== undefined && origin !== `http://${host}`)
    return { status: 403, message: 'not for other pages' } as const;
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    return { status: 403, message: 'not for links of other pages; open the address itself' } as const;
  if (['GET', 'HEAD', 'POST'].includes(method)) return null;
  return { status: 405, message: 'GET, or POST with a JSON body' } as const;
}
