import fc from 'fast-check';
import { expect, it } from 'vitest';
import { refuseSender, type Sender } from '../../../../../engine/api/ui/guard.ts';

const PORT = 8444;
const NAMES = [`127.0.0.1:${PORT}`, `localhost:${PORT}`];
const near = fc.oneof(
  fc.string(),
  fc.webAuthority({ withPort: true }),
  fc.constantFrom(...NAMES).chain((name) => fc.tuple(fc.string(), fc.string()).map(([a, z]) => `${a}${name}${z}`)),
);
const sender = fc.record<Sender>({
  method: fc.oneof(fc.constantFrom('GET', 'HEAD', 'POST', 'OPTIONS', 'PUT'), fc.string()),
  host: fc.option(fc.oneof(fc.constantFrom(...NAMES), near), { nil: undefined }),
  origin: fc.option(fc.oneof(fc.constantFrom(...NAMES.map((name) => `http://${name}`)), near), { nil: undefined }),
  site: fc.option(fc.constantFrom('same-origin', 'none', 'same-site', 'cross-site', ''), { nil: undefined }),
});

it('lets exactly those in that come from our own page or the address bar', () => {
  fc.assert(
    fc.property(sender, (each) => {
      const { method, host, origin, site } = each;
      const isOurs =
        NAMES.includes(host ?? '') &&
        (origin === undefined || origin === `http://${host}`) &&
        [undefined, 'same-origin', 'none'].includes(site) &&
        ['GET', 'HEAD', 'POST'].includes(method);
      expect(refuseSender(each, PORT) === null).toBe(isOurs);
    }),
  );
});
