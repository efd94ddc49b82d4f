import { E5, E5_PACKAGES, installedVersion, openE5Encoder } from './e5-encoder.ts';
import type { Encoder } from './encoder.ts';
import { createStaticEncoder, STATIC } from './static-encoder.ts';

/** The encoder that a worker thread runs; plain data, since it is posted to the thread. */
export interface EncoderChoice {
  readonly kind: 'static' | 'e5';
  /** Where the user installed the packages of `e5`. */
  readonly dir: string;
}

export interface EncoderFacts {
  readonly id: string;
  readonly dimensions: number;
  /** Documents per request to the thread; a query waits for one request at most. */
  readonly atOnce: number;
  /** Packages the user must install, with versions. */
  readonly packages: Readonly<Record<string, string>>;
}

/** Known without loading the encoder. */
export const ENCODER_FACTS: Readonly<Record<EncoderChoice['kind'], EncoderFacts>> = {
  static: { ...STATIC, atOnce: 32, packages: {} },
  e5: { ...E5, atOnce: 1, packages: E5_PACKAGES },
};

function installCommand({ kind, dir }: EncoderChoice): string {
  const names = Object.entries(ENCODER_FACTS[kind].packages).map(([name, version]) => `${name}@${version}`);
  return names.length === 0 ? '' : `npm install --prefix ${dir} ${names.join(' ')}`;
}

/** @throws CometError `index_failed` */
export async function openEncoder(choice: EncoderChoice): Promise<Encoder> {
  switch (choice.kind) {
    case 'static':
      return createStaticEncoder();
    case 'e5':
      return openE5Encoder(choice.dir, installCommand(choice));
  }
}

/** Packages of an encoder that are missing or have another version ('' for none), and the command that installs them. */
export function missingPackages(choice: EncoderChoice): { readonly detail: string; readonly install: string } {
  const wanted = Object.entries(ENCODER_FACTS[choice.kind].packages);
  const missing = wanted.filter(([name, version]) => !isVersion(installedVersion(choice.dir, name), version));
  const names = missing.map(([name, version]) => `${name} ${version}`);
  const detail = missing.length === 0 ? '' : `the embedder ${choice.kind} needs ${names.join(' and ')}`;
  return { detail, install: installCommand(choice) };
}

function isVersion(installed: string | null, wanted: string): boolean {
  return installed === wanted || (installed?.startsWith(`${wanted}.`) ?? false);
}
