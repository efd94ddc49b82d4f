import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AUDITED_PLAIN } from '../../../bench/redact/forms.ts';
import { isLeft, plantedSecrets } from '../../../bench/redact/secrets.ts';
import { createRedactor } from '../../../redact/index.ts';

const { text: redact, json } = createRedactor({ markKey: Buffer.alloc(32, 7) });
const planted = plantedSecrets(1, 11);
const texts = planted.map(({ text }) => text);
const lines = (text: string): number => text.split('\n').length;

describe('redaction of texts with secrets in forms of other rules', () => {
  it('is idempotent and keeps the number of lines, as text and in JSON', () => {
    for (const text of texts) {
      const once = redact(text);
      expect(redact(once)).toBe(once);
      expect(lines(once), text).toBe(lines(text));
      const { text: body } = json(JSON.stringify([{ type: 'text', text }]));
      expect(lines((JSON.parse(body) as { text: string }[])[0]?.text ?? ''), text).toBe(lines(text));
    }
  });

  it('never throws and stays idempotent where texts are cut and mixed', () => {
    const piece = fc
      .tuple(fc.constantFrom(...texts), fc.nat(200), fc.nat(200))
      .map(([text, from, length]) => text.slice(from, from + length));
    fc.assert(
      fc.property(
        fc.array(fc.oneof(piece, fc.string({ unit: 'binary', maxLength: 20 })), { maxLength: 6 }),
        (parts) => {
          const once = redact(parts.join(''));
          expect(redact(once)).toBe(once);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('finds the audited forms', () => {
    const audited = planted.filter(({ half }) => half === 'audited');
    const missed = audited.filter(({ secret, text }) => isLeft(secret, redact(text)));
    expect(missed.map(({ rule }) => rule).length).toBeLessThanOrEqual(2);
  });
});

describe('text without secrets', () => {
  it.each([
    ...AUDITED_PLAIN,
    '--- PASS: TestParse/IPv4_and_IPv6 (0.00s)',
    'PASS test/unit/IPv4.test.ts',
    'function createCipher(algorithm: string, password: BinaryLike, options?: Options): Cipher;',
    "passphrase = passphrase || '';",
    'pass_through: this.#unused ? { sessions: 3 } : null',
    'New session: `2026-01-23-a6c3cac2`, checkpoint_type=session checkpoint_id=bf8b8f950c8a',
    'integrity sha512-q8Wz3LkV0pXn5RtY7bMc2Hs9q8Wz3LkV0pXn5RtY7bMc2Hs9q8Wz3LkV0pXn5RtY7bMc2Hs9q8Wz3LkV0pX== token',
    'password: string; token: string | null; keyword: "passenger", keyboard = layout2026',
    '| name | password |\n|---|---|\n| password | required, at least 12 characters |',
  ])('%s', (text) => expect(redact(text)).toBe(text));
});
