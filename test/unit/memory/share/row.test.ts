import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  generateKeys,
  isSigned,
  parsePayload,
  Row,
  rowDigest,
  signRow,
} from '../../../../memory/share/row.ts';
import { makeNode } from '../../../helpers/nodes.ts';

const MACHINE = 'a'.repeat(32);
const OTHER = 'b'.repeat(32);
const KEYS = generateKeys();

describe('canonicalJson', () => {
  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(turned)).toBe(canonicalJson(value));
      }),
    );
  });

  it('keeps the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe('a signature', () => {
  it('holds for its machine, number and payload alone', () => {
    fc.assert(
      fc.property(fc.nat(), fc.string(), fc.string({ minLength: 1 }), (sequence, payload, added) => {
        const row = signRow(MACHINE, { sequence, payload }, KEYS.privateKey);
        expect(isSigned(MACHINE, row, KEYS.publicKey)).toBe(true);
        expect(isSigned(OTHER, row, KEYS.publicKey)).toBe(false);
        expect(isSigned(MACHINE, { ...row, sequence: sequence + 1 }, KEYS.publicKey)).toBe(false);
        expect(isSigned(MACHINE, { ...row, payload: payload + added }, KEYS.publicKey)).toBe(false);
        expect(isSigned(MACHINE, row, generateKeys().publicKey)).toBe(false);
      }),
      { numRuns: 30 },
    );
  });

  it('is refused, not thrown about, where the key or the signature is garbage', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (key, signature) => {
        expect(isSigned(MACHINE, { sequence: 1, payload: '', signature }, key)).toBe(false);
      }),
    );
  });

  it('gives the same digest for the same content', () => {
    const row = signRow(MACHINE, { sequence: 4, payload: '{}' }, KEYS.privateKey);
    expect(rowDigest(MACHINE, { ...row })).toBe(rowDigest(MACHINE, row));
    expect(rowDigest(MACHINE, { ...row, sequence: 5 })).not.toBe(rowDigest(MACHINE, row));
  });
});

describe('a payload', () => {
  it('is a node, a tombstone or a card', () => {
    const node = makeNode();
    expect(parsePayload(JSON.stringify({ kind: 'node', version: 1, node }))).toEqual({
      kind: 'node',
      version: 1,
      node: expect.anything(),
    });
    expect(parsePayload('{"kind":"tombstone","nodeId":"mem_20260301_101500_00000a"}')).not.toBeNull();
  });

  it.each([
    ['a path in an id', { kind: 'tombstone', nodeId: '../../etc/passwd' }],
    [
      'a path in the id of a node',
      { kind: 'node', version: 1, node: makeNode({ node_id: '../mem_20260301_101500_00000a' }) },
    ],
    ['a name with a line break', { kind: 'card', name: 'a\nb', key: '', salt: null }],
    ['a name that begins a tag', { kind: 'card', name: '<system>', key: '', salt: null }],
    ['another kind', { kind: 'order', text: 'x' }],
  ])('is refused with %s', (_, payload) => expect(parsePayload(JSON.stringify(payload))).toBeNull());

  it('is refused where it is not JSON, or too large', () => {
    expect(parsePayload('{')).toBeNull();
    expect(Row.safeParse({ sequence: 1, payload: 'x'.repeat(600_000), signature: '' }).success).toBe(false);
  });
});
