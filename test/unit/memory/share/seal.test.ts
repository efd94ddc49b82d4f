import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSealed, newSalt, seal, sealingKey, unseal } from '../../../../memory/share/seal.ts';

const SALT = newSalt();
const KEY = await sealingKey('correct horse', SALT);

describe('seal', () => {
  it('gives back every text, and never the same bytes twice', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const sealed = seal(text, KEY);
        expect(isSealed(sealed)).toBe(true);
        expect(unseal(sealed, KEY)).toBe(text);
        expect(seal(text, KEY)).not.toBe(sealed);
      }),
    );
  });

  it('opens with no other passphrase or salt', async () => {
    const sealed = seal('staging is on 5433', KEY);
    expect(unseal(sealed, await sealingKey('wrong horse', SALT))).toBeNull();
    expect(unseal(sealed, await sealingKey('correct horse', newSalt()))).toBeNull();
    expect(unseal(sealed, await sealingKey('correct horse', SALT))).toBe('staging is on 5433');
  });

  it('notices any changed byte', () => {
    const sealed = seal('staging is on 5433', KEY);
    const bytes = Buffer.from(sealed.slice('sealed:'.length), 'base64');
    for (const at of bytes.keys()) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ 1;
      expect(unseal(`sealed:${changed.toString('base64')}`, KEY)).toBeNull();
    }
  });

  it('refuses what it did not write', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(unseal(text, KEY)).toBeNull();
      }),
    );
    expect(unseal('sealed:', KEY)).toBeNull();
  });
});
