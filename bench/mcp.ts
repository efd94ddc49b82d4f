/**
 * How long a tool of `comet-cc mcp` takes, beside the same question to the engine's API.
 *
 *   npm run bench:mcp -- [--nodes 10000] [--json]
 *
 * A made-up history is written below a home of its own as the engine keeps it, journal and node files, and a daemon is
 * started there. Its questions are asked by the SDK's client through the built program, and straight over the socket,
 * in turns.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { homePaths } from '../common/paths.ts';
import { engineClient } from '../engine/api/client.ts';
import { openNodeFiles } from '../memory/storage/fs/node-files.ts';
import { openJournal } from '../memory/storage/fs/turn-log.ts';
import { startDaemon } from './latency/daemon.ts';
import { nowMs, type Spread, spread } from './latency/stats.ts';
import { CLI } from './paths.ts';
import { createCorpus, PROJECT_DIR } from './scale/corpus.ts';

const QUESTIONS = 200;
const TURNS_PER_NODE = 3;
const INDEXED_MS = 900_000;

const { values } = parseArgs({
  options: { nodes: { type: 'string', default: '10000' }, json: { type: 'boolean', default: false } },
});
const wanted = Number(values.nodes);
if (!(wanted > 0)) throw new Error('--nodes takes a whole number');

const dir = await mkdtemp(path.join(os.tmpdir(), 'comet-mcp-'));
try {
  const paths = homePaths(path.join(dir, 'h'));
  const corpus = createCorpus(wanted * TURNS_PER_NODE);
  const journal = await openJournal({ dir: paths.journalDir, report: (problem) => console.error(problem) });
  await Promise.all(corpus.sessions.flatMap((_, at) => corpus.session(at)).map((turn) => journal.append(turn)));
  await journal.close();
  await (await openNodeFiles(paths)).save(corpus.nodes());
  // No request goes upstream here.
  const daemon = await startDaemon(dir, { port: 9, caFile: '' });
  try {
    const report = await measured(paths.engineSocket, corpus);
    if (values.json) console.log(JSON.stringify(report, null, 2));
    else {
      console.log(`${report.nodes} memories, ${QUESTIONS} questions`);
      console.log(`  retrieve_memory   ${line(report.mcp_ms)} ms`);
      console.log(`  nodes/search      ${line(report.api_ms)} ms`);
      console.log(`  get_memory_index  ${line(report.index_ms)} ms`);
      console.log(`  ready for its first call after ${report.start_ms.toFixed(0)} ms`);
    }
  } finally {
    await daemon.stop();
  }
} finally {
  await rm(dir, { recursive: true, force: true });
}

async function measured(socket: string, corpus: ReturnType<typeof createCorpus>) {
  const engine = engineClient(socket);
  if (!(await engine.call('flush', { timeoutMs: INDEXED_MS }, { timeoutMs: INDEXED_MS + 5_000 }))) {
    throw new Error('the history was not indexed in time');
  }
  const from = nowMs();
  const client = await connect();
  const startMs = nowMs() - from;
  const [mcp, api, index]: [number[], number[], number[]] = [[], [], []];
  const timed = async (samples: number[], work: () => Promise<unknown>): Promise<void> => {
    const began = nowMs();
    await work();
    samples.push(nowMs() - began);
  };
  for (let nth = 0; nth < 2 * QUESTIONS; nth += 1) {
    const query = corpus.question(nth).text;
    // The first half warms up.
    const counts = nth >= QUESTIONS;
    await timed(counts ? mcp : [], () => called(client, 'retrieve_memory', { summary_query: query }));
    await timed(counts ? api : [], () => engine.call('nodes/search', { query, top: 5, projectDir: PROJECT_DIR }));
  }
  for (let nth = 0; nth < 20; nth += 1) await timed(index, () => called(client, 'get_memory_index', {}));
  await client.close();
  const { nodes } = await engine.call('status', {});
  const spreads: Record<'mcp_ms' | 'api_ms' | 'index_ms', Spread> = {
    mcp_ms: spread(mcp),
    api_ms: spread(api),
    index_ms: spread(index),
  };
  return { node: process.version, nodes, start_ms: startMs, ...spreads };
}

async function connect(): Promise<Client> {
  const client = new Client({ name: 'bench', version: '1' }, { capabilities: { roots: {} } });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: `file://${PROJECT_DIR}` }] }));
  const env = { PATH: process.env['PATH'] ?? '', HOME: dir, COMET_CC_HOME: path.join(dir, 'h') };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [CLI, 'mcp'], env, stderr: 'inherit' }),
  );
  return client;
}

async function called(client: Client, name: string, args: Record<string, unknown>): Promise<void> {
  const { isError, content } = await client.callTool({ name, arguments: args });
  if (isError) throw new Error(JSON.stringify(content));
}

function line({ p50, p95 }: Spread): string {
  return `p50 ${p50.toFixed(1)}, p95 ${p95.toFixed(1)}`;
}
