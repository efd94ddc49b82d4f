import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanArray, scanBody, scanObject } from '../../../../proxy/wire/json.ts';

const parse = (body: Buffer, at: { start: number; end: number }): unknown =>
  JSON.parse(body.toString('utf8', at.start, at.end));

describe('the byte scanner', () => {
  it('finds every field and message of any JSON body with any white space', () => {
    fc.assert(
      fc.property(
        fc.record({ messages: fc.array(fc.jsonValue(), { minLength: 1 }), system: fc.array(fc.jsonValue()) }),
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(0, 1, '\t', ' \r\n'),
        (known, others, space) => {
          const value = { ...others, ...known };
          const body = Buffer.from(` ${JSON.stringify(value, null, space)}\n`);
          const scan = scanBody(body);
          const read = [...(scan?.fields ?? [])].map(([key, at]) => [key, parse(body, at)]);
          const expected = JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
          expect(Object.fromEntries(read)).toEqual(Object.fromEntries(Object.entries(expected)));
          expect(scan?.messages.map((at) => parse(body, at))).toEqual(expected['messages']);
          expect(scan?.system?.map((at) => parse(body, at))).toEqual(expected['system']);
        },
      ),
    );
  });

  it('takes no body that was cut short', () => {
    const body = Buffer.from('{"a":"x\\"]","messages":[{"role":"user","content":"{[\\\\"}]}');
    expect(scanBody(body)).not.toBeNull();
    for (let end = 0; end < body.length; end += 1) expect(scanBody(body.subarray(0, end))).toBeNull();
  });

  it.each([
    ['trailing bytes', '{"messages":[1]} x'],
    ['a field twice', '{"messages":[1],"messages":[2]}'],
    ['a field twice, once escaped', '{"messages":[1],"mess\\u0061ges":[2]}'],
    ['no messages', '{"model":"m"}'],
    ['empty messages', '{"messages":[]}'],
    ['messages that are no array', '{"messages":{}}'],
    ['crossed brackets', '{"messages":[{]}}'],
    ['not an object', '[1]'],
    ['nothing', ''],
  ])('takes no body with %s', (_name, text) => {
    expect(scanBody(Buffer.from(text))).toBeNull();
  });

  it('leaves numbers and lone surrogates as the bytes they are', () => {
    const body = Buffer.from('{"n":12345678901234567890.50,"s":"\\ud800","messages":[{"x":1e400}]}');
    const scan = scanBody(body);
    const text = (name: string): string => {
      const at = scan?.fields.get(name);
      return at === undefined ? '' : body.toString('utf8', at.start, at.end);
    };
    expect([text('n'), text('s'), text('messages')]).toEqual(['12345678901234567890.50', '"\\ud800"', '[{"x":1e400}]']);
  });

  it('knows empty objects and arrays', () => {
    expect(scanObject(Buffer.from('{ }'), 0)).toEqual({ values: new Map(), end: 3 });
    expect(scanArray(Buffer.from('[ ]'), 0)).toEqual([]);
  });
});
