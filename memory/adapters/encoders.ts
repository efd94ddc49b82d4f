import type { Encoder } from '../core/question.ts';
import { createHashEncoder } from './hash-encoder.ts';
import { createStaticEncoder, STATIC } from './static-encoder.ts';

/** Which encoder a thread runs; it crosses the thread's border, so it is plain data. */
export type EncoderChoice = { readonly kind: 'static' } | { readonly kind: 'hash' };

export interface EncoderFacts {
  readonly id: string;
  readonly dimensions: number;
  /** Documents made at one time: a question waits for no more. */
  readonly atOnce: number;
}

/** What is known of an encoder before it is there. */
export function encoderFacts(choice: EncoderChoice): EncoderFacts {
  switch (choice.kind) {
    case 'static':
      return { ...STATIC, atOnce: 32 };
    case 'hash': {
      const { id, dimensions } = createHashEncoder();
      return { id, dimensions, atOnce: 32 };
    }
  }
}

export async function openEncoder(choice: EncoderChoice): Promise<Encoder> {
  switch (choice.kind) {
    case 'static':
      return createStaticEncoder();
    case 'hash':
      return createHashEncoder();
  }
}
