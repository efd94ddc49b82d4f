import { lstatSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CometError } from '../common/errors.ts';
import { byteSink } from '../common/log.ts';
import { homePaths, PLATFORM } from '../common/paths.ts';
import { createRoute, Guard } from '../proxy/guard/index.ts';

process.umask(0o077);

const here = path.dirname(fileURLToPath(import.meta.url));
const env = process.env;
const paths = homePaths(path.resolve(env['COMET_CC_HOME'] || path.join(os.homedir(), '.comet-cc')));
const port = Number(env['COMET_CC_PORT'] || 8443);

// Only our own log file is rotated; a terminal or service manager keeps its own.
const write = env['COMET_CC_GUARD_LOG']
  ? byteSink(env['COMET_CC_GUARD_LOG'])
  : (bytes: Buffer) => void process.stderr.write(bytes);
process.stderr.on('error', () => {
  // The reader of the pipe has exited; the guard keeps running.
});

process.on('disconnect', () => {
  // The parent was only waiting for a word; this process outlives it.
});

try {
  const guard = new Guard({
    port,
    upstream: env['COMET_CC_UPSTREAM'] || 'https://api.anthropic.com',
    token: readToken(paths.proxyTokenFile),
    socketPath: paths.guardSocket,
    enginePath: path.join(here, 'engine.js'),
    engineEnv: env,
    version: readVersion(),
    route: createRoute(proxyUrl(), env['no_proxy'] ?? env['NO_PROXY'] ?? ''),
    timings: { holdMs: Number(env['COMET_CC_HOLD_MS'] || 2_000) },
    onTrouble: (message) => write(Buffer.from(`comet-cc: ${message}\n`)),
    onOutput: write,
    onHealthy: () => tell({ type: 'healthy', port: guard.status().port }),
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void guard.stop());
  // A terminal that closes must not take the daemon with it.
  process.on('SIGHUP', () => {});
  tell({ type: 'listening', port: await guard.listen() });
  await guard.closed;
  process.exit(0);
} catch (error) {
  const inUse = error instanceof CometError && error.code === 'port_in_use';
  const message = error instanceof Error ? error.message : String(error);
  console.error(message);
  tell(inUse ? { type: 'port_in_use', port, message } : { type: 'failed', message }, () => process.exit(1));
}

function tell(message: object, then: () => void = () => {}): void {
  if (process.connected && process.send !== undefined) process.send(message, undefined, {}, then);
  else then();
}

/** @throws CometError `unsafe_file` unless it is our own private file with a token */
function readToken(file: string): string {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  const own = process.getuid === undefined || stats?.uid === process.getuid();
  const closed = !PLATFORM.hasModes || ((stats?.mode ?? 0o777) & 0o077) === 0;
  const token = stats?.isFile() && own && closed ? readFileSync(file, 'utf8').trim() : '';
  if (token.length >= 16) return token;
  throw new CometError('unsafe_file', `${file} is not a private file (0600, owned by you) with a token; remove it`);
}

function proxyUrl(): string {
  const url = env['COMET_CC_UPSTREAM_PROXY'] ?? '';
  return url === 'off' ? '' : url;
}

function readVersion(): string {
  const text = readFileSync(path.join(here, '..', '..', 'package.json'), 'utf8');
  return String((JSON.parse(text) as { version?: unknown }).version);
}
