/**
 * How long ordinary commands take from start to end over `node -e 0`, beside a running daemon.
 *
 *   npm run bench:start -- [--runs 15] [--json]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startDaemon } from './latency/daemon.ts';
import { spread } from './latency/stats.ts';

const COMMANDS = ['statusline', 'status', 'memory ls', 'memory search port', 'session ls', 'explain --list', 'config'];

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '15' }, json: { type: 'boolean', default: false } },
});
const dir = await mkdtemp(path.join(os.tmpdir(), 'comet-start-'));
// No request goes upstream here.
const daemon = await startDaemon(dir, { port: 9, caFile: '' });
try {
  const nodes: number[] = [];
  const timed = COMMANDS.map((command) => ({ command, samples: [] as number[] }));
  for (let run = 0; run < Number(values.runs); run += 1) {
    nodes.push(await daemon.nodeMs());
    for (const { command, samples } of timed) samples.push(await daemon.commandMs(command.split(' ')));
  }
  const { p50: node } = spread(nodes);
  const report = timed.map(({ command, samples }) => {
    const { p50 } = spread(samples);
    return { command, p50_ms: Math.round(p50), over_node_ms: Math.round(p50 - node) };
  });
  if (values.json) console.log(JSON.stringify({ node_ms: Math.round(node), commands: report }, null, 2));
  else for (const { command, over_node_ms: ms } of report) console.log(`${command}: ${ms} ms over node -e 0`);
} finally {
  await daemon.stop();
  await rm(dir, { recursive: true, force: true });
}
