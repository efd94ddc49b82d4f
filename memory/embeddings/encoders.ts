import { E5, E5_PACKAGES, openE5Encoder } from './e5-encoder.ts';
import { createHashEncoder } from './hash-encoder.ts';
import { MINILM, MINILM_PACKAGES, openMinilmEncoder } from './minilm-encoder.ts';
import { installedVersion } from './optional-package.ts';
import type { Encoder } from './query-encoder.ts';
import { createStaticEncoder, STATIC } from './static-encoder.ts';

/** Which encoder a thread runs; it crosses the thread's border, so it is plain data. */
export interface EncoderChoice {
  readonly kind: 'static' | 'hash' | 'minilm' | 'e5';
  /** Where the user installed the packages of `minilm` and `e5`. */
  readonly dir: string;
}

export interface EncoderFacts {
  readonly id: string;
  readonly dimensions: number;
  /** Documents made at one time: a question waits for no more. */
  readonly atOnce: number;
  /** Versions of the packages that the user must install. */
  readonly packages: Readonly<Record<string, string>>;
}

const { id, dimensions } = createHashEncoder();

/** What is known of an encoder before it is there. */
export const ENCODER_FACTS: Readonly<Record<EncoderChoice['kind'], EncoderFacts>> = {
  static: { ...STATIC, atOnce: 32, packages: {} },
  hash: { id, dimensions, atOnce: 32, packages: {} },
  minilm: { ...MINILM, atOnce: 1, packages: MINILM_PACKAGES },
  e5: { ...E5, atOnce: 1, packages: E5_PACKAGES },
};

/** The command that installs what an encoder needs; '' for nothing. */
export function installCommand({ kind, dir }: EncoderChoice): string {
  const names = Object.entries(ENCODER_FACTS[kind].packages).map(([name, version]) => `${name}@${version}`);
  return names.length === 0 ? '' : `npm install --prefix ${dir} ${names.join(' ')}`;
}

/** @throws CometError `index_failed` */
export async function openEncoder(choice: EncoderChoice): Promise<Encoder> {
  switch (choice.kind) {
    case 'static':
      return createStaticEncoder();
    case 'hash':
      return createHashEncoder();
    case 'minilm':
      return openMinilmEncoder(choice.dir, installCommand(choice));
    case 'e5':
      return openE5Encoder(choice.dir, installCommand(choice));
  }
}

/** What of an encoder's packages is missing or of another version, '' for nothing, and how to install it. */
export function missingPackages(choice: EncoderChoice): { readonly detail: string; readonly install: string } {
  const wanted = Object.entries(ENCODER_FACTS[choice.kind].packages);
  const missing = wanted.filter(([name, version]) => !isVersion(installedVersion(choice.dir, name), version));
  const names = missing.map(([name, version]) => `${name} ${version}`);
  const detail = missing.length === 0 ? '' : `the embedder ${choice.kind} needs ${names.join(' and ')}`;
  return { detail, install: installCommand(choice) };
}

/** Whether it is that version, or one that begins with it. */
function isVersion(installed: string | null, wanted: string): boolean {
  return installed === wanted || (installed?.startsWith(`${wanted}.`) ?? false);
}
