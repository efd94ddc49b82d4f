/**
 * Starts a hook, the MCP server or a command of comet-cc from wherever this plugin was copied to:
 *
 *   node launch.mjs hook session-start
 *   node launch.mjs mcp
 *   node launch.mjs run status
 *
 * The program is taken from COMET_CC_BIN (its path), else from the package that the plugin lies in, else from PATH.
 */
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

// biome-ignore lint/style/noProcessEnv: a process of its own, and this is its input
const env = process.env;
const PROGRAM = path.join('dist', 'bin', 'comet-cc.js');
const HOOKS = ['session-start', 'user-prompt-submit', 'compact', 'session-end', 'subagents'];

const [what, hook, ...rest] = process.argv.slice(2);
const program = find();
if (program !== null && (what === 'mcp' || what === 'run')) {
  process.argv = [process.execPath, program, ...(what === 'mcp' ? ['mcp'] : [hook, ...rest])];
  await import(pathToFileURL(program).href);
} else if (what === 'mcp' || what === 'run') {
  process.stderr.write('comet-cc is not on PATH: run npm install -g . in its clone, or set COMET_CC_BIN to its path\n');
  process.exitCode = 1;
} else if (program !== null && what === 'hook' && HOOKS.includes(hook)) {
  const script = path.resolve(program, '..', '..', 'hooks', `${hook}.js`);
  // A hook says nothing where there is nothing to say it with.
  if (existsSync(script)) await import(pathToFileURL(script).href);
}

function find() {
  const here = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..', PROGRAM);
  const folders = (env['PATH'] ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  // npm links the program into a folder of PATH; on Windows it puts the packages into that folder.
  const linked = folders.flatMap((folder) => [
    path.join(folder, 'comet-cc'),
    path.join(folder, 'node_modules', 'comet-cc', PROGRAM),
  ]);
  return [env['COMET_CC_BIN'] ?? '', here, ...linked].map(real).find((file) => file !== null) ?? null;
}

/** Null for what is not the program itself, such as a script that would start it. */
function real(file) {
  if (file === '' || !existsSync(file)) return null;
  const target = realpathSync(file);
  return target.endsWith(`${path.sep}${PROGRAM}`) ? target : null;
}
