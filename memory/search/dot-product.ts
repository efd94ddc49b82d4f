/** What node has of WebAssembly, which TypeScript's library knows for browsers only. */
interface Wasm {
  readonly Memory: new (size: {
    readonly initial: number;
  }) => { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Readonly<Record<string, unknown>> };
}

/** Writes the inner product of the vector at `query` with every row from `row` to before `end` to `out`; all are bytes. */
export type Products = (query: number, row: number, end: number, out: number, vectorBytes: number) => void;

/** Memory that instructions for eight numbers at once read: vectors of length 1 as whole numbers of 16 bits, times `SCALE`. */
export interface SimdMemory {
  /** What it holds now; another one after it has grown. */
  buffer(): ArrayBuffer;
  /** Makes room for so many bytes; what is there stays where it is. */
  grow(bytes: number): void;
  /** Vectors take a multiple of `BLOCK_BYTES`. */
  readonly products: Products;
}

/** A sum of products stays within 31 bits. */
export const SCALE = 32_767;
/** What one step of the inner loop takes. */
export const BLOCK_BYTES = 64;
const PAGE_BYTES = 65_536;

export function createSimdMemory(): SimdMemory {
  const { Memory, Module, Instance } = (globalThis as unknown as { readonly WebAssembly: Wasm }).WebAssembly;
  const memory = new Memory({ initial: 0 });
  compiled ??= new Module(program());
  const { products } = new Instance(compiled, { our: { memory } }).exports;
  return {
    buffer: () => memory.buffer,
    grow(bytes) {
      const missing = bytes - memory.buffer.byteLength;
      if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
    },
    products: products as Products,
  };
}

let compiled: object | null = null;

const [QUERY, ROW, END, OUT, VECTOR_BYTES, AT, STOP, SUM] = [0, 1, 2, 3, 4, 5, 6, 7] as const;
const SUMS = [SUM, SUM + 1, SUM + 2, SUM + 3] as const;
const [I32, V128, VOID] = [0x7f, 0x7b, 0x40];
const [BLOCK, LOOP, CLOSE, JUMP, JUMP_IF] = [0x02, 0x03, 0x0b, 0x0c, 0x0d];
const [LESS, NOT_LESS, PLUS] = [0x49, 0x4f, 0x6a];
const [AS_FLOAT, FLOAT, FLOAT_TIMES] = [0xb2, 0x43, 0x94];

const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];
const whole = (number: number): number[] => [0x41, (number & 0x7f) | 0x80, number >> 7];
const load = (local: number, offset: number): number[] => [...get(local), 0xfd, 0x00, 4, offset];
const zeros = [0xfd, 0x0c, ...new Array<number>(16).fill(0)];
const plus = [0xfd, 0xae, 0x01];
/** Eight products, each added to its neighbour: four numbers of 32 bits. */
const pairs = [0xfd, 0xba, 0x01];
const lane = (nth: number): number[] => [...get(SUM), 0xfd, 0x1b, nth];
const stepped = (local: number, by: number): number[] => [...get(local), ...whole(by), PLUS, ...set(local)];

/**
 * for (; row < end; out += 4) {
 *   sums = 0
 *   for (at = query, stop = query + vectorBytes; at < stop; at += 64, row += 64) sums[i] += pairs(row[i], at[i]), i = 0…3
 *   *out = (sums[0] + sums[1] + sums[2] + sums[3], all four lanes together) / SCALE²
 * }
 */
function program(): Uint8Array {
  const inner = SUMS.flatMap((sum, nth) => [
    ...[...get(sum), ...load(ROW, nth * 16), ...load(AT, nth * 16)],
    ...[...pairs, ...plus, ...set(sum)],
  ]);
  const body = [
    ...[BLOCK, VOID, LOOP, VOID],
    ...[...get(ROW), ...get(END), NOT_LESS, JUMP_IF, 1],
    ...SUMS.flatMap((sum) => [...zeros, ...set(sum)]),
    ...[...get(QUERY), ...set(AT), ...get(QUERY), ...get(VECTOR_BYTES), PLUS, ...set(STOP)],
    ...[LOOP, VOID, ...inner, ...stepped(ROW, BLOCK_BYTES), ...stepped(AT, BLOCK_BYTES)],
    ...[...get(AT), ...get(STOP), LESS, JUMP_IF, 0, CLOSE],
    ...[...get(SUM), ...get(SUM + 1), ...plus, ...get(SUM + 2), ...get(SUM + 3), ...plus, ...plus, ...set(SUM)],
    ...[...get(OUT), ...lane(0), ...lane(1), PLUS, ...lane(2), ...lane(3), PLUS, PLUS, AS_FLOAT],
    ...[FLOAT, ...new Uint8Array(Float32Array.of(1 / SCALE ** 2).buffer), FLOAT_TIMES],
    ...[0x38, 2, 0, ...stepped(OUT, 4), JUMP, 0],
    ...[CLOSE, CLOSE, CLOSE],
  ];
  const locals = [2, 2, I32, 4, V128];
  const text = (name: string): number[] => sized([...new TextEncoder().encode(name)]);
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 5, I32, I32, I32, I32, I32, 0]),
    ...section(2, [1, ...text('our'), ...text('memory'), 2, 0, 0]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...text('products'), 0, 0]),
    ...section(10, [1, ...sized([...locals, ...body])]),
  ]);
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...sized(content)];
}

/** Its length first, in seven bits a byte. */
function sized(content: readonly number[]): number[] {
  const { length } = content;
  return [...(length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7]), ...content];
}
