import { readFileSync } from 'node:fs';
import { CometError, getReason } from '../common/errors.ts';
import { inspectPrivateFile } from '../common/files.ts';
import { byteSink } from '../common/log.ts';
import { builtFile, getHome, homePaths, VERSION } from '../common/paths.ts';
import { sha256 } from '../common/text.ts';
import { createRoute, Guard } from '../proxy/guard/index.ts';

process.umask(0o077);

const env = process.env;
const paths = homePaths(getHome(env));
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
    ...configure(env),
    port,
    token: readToken(paths.proxyTokenFile),
    socketPath: paths.guardSocket,
    enginePath: builtFile('bin', 'engine.js'),
    version: VERSION,
    build: sha256(readFileSync(builtFile('bin', 'guard.js'))),
    timings: { holdMs: Number(env['COMET_CC_HOLD_MS'] || 2_000) },
    configure,
    onTrouble: (message) => write(Buffer.from(`comet-cc: ${message}\n`)),
    onOutput: write,
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void guard.stop());
  // A terminal that closes must not take the daemon with it.
  process.on('SIGHUP', () => {});
  tell({ type: 'listening', port: await guard.listen() });
  await guard.closed;
  process.exit(0);
} catch (error) {
  const inUse = error instanceof CometError && error.code === 'port_in_use';
  const message = getReason(error);
  console.error(message);
  tell(inUse ? { type: 'port_in_use', port, message } : { type: 'failed', message }, () => process.exit(1));
}

function tell(message: object, then: () => void = () => {}): void {
  if (process.connected && process.send !== undefined) process.send(message, undefined, {}, then);
  else then();
}

/** @throws CometError `unsafe_file` unless it is our own private file with a token */
function readToken(file: string): string {
  const token = inspectPrivateFile(file) === null ? readFileSync(file, 'utf8').trim() : '';
  if (token.length >= 16) return token;
  throw new CometError('unsafe_file', `${file} is not a private file (0600, owned by you) with a token; remove it`);
}

function configure(from: NodeJS.ProcessEnv) {
  // Node reads it once, as it starts.
  if (from['NODE_EXTRA_CA_CERTS'] !== env['NODE_EXTRA_CA_CERTS']) throw new Error('NODE_EXTRA_CA_CERTS has changed');
  const proxy = from['COMET_CC_UPSTREAM_PROXY'] ?? '';
  return {
    upstream: from['COMET_CC_UPSTREAM'] || 'https://api.anthropic.com',
    engineEnv: { ...from, COMET_CC_GUARD_LOG: env['COMET_CC_GUARD_LOG'] },
    route: createRoute(proxy === 'off' ? '' : proxy, from['no_proxy'] ?? from['NO_PROXY'] ?? ''),
  };
}
