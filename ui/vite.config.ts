import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig, type Plugin } from 'vite';

/** The packages whose code is in the bundle. */
const BUNDLED =
  'preact @preact/signals @preact/signals-core @tanstack/virtual-core diff events graphology graphology-layout-forceatlas2 graphology-utils sigma uplot';

const packages = path.join(import.meta.dirname, '..', 'node_modules');

/** Copyright notices that the licences of bundled packages require. */
const licenses: Plugin = {
  name: 'licenses',
  generateBundle() {
    const texts = BUNDLED.split(' ').map((name) => `${name}\n\n${getLicense(path.join(packages, name))}`);
    this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: texts.join(`\n${'-'.repeat(72)}\n\n`) });
  },
};

function getLicense(folder: string): string {
  const file = ['LICENSE', 'LICENSE.txt', 'LICENSE.md'].map((name) => path.join(folder, name)).find(existsSync);
  if (file === undefined) throw new Error(`${folder} has no licence text`);
  return readFileSync(file, 'utf8');
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [licenses],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  // Data URLs of assets would need an exception in the content security policy.
  build: { outDir: '../dist/ui', emptyOutDir: true, assetsInlineLimit: 0, reportCompressedSize: false },
  worker: { format: 'es' },
});
