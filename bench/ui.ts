import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { homePaths } from '../common/paths.ts';
import { engineClient } from '../engine/api/index.ts';
import { followUi, signIn } from '../test/helpers/ui-client.ts';
import { createConversation, lone } from './latency/conversation.ts';
import { openStage } from './latency/stage.ts';
import { nowMs, spread } from './latency/stats.ts';
import { open, timed, type Way } from './latency/way.ts';
import { type BrowserFigures, MISSING, measureBrowser } from './ui/browser.ts';

/**
 * What the dashboard costs, on this machine, now: `npm run bench:ui [-- --nodes 10000 --requests 2000 --json]`. Figures
 * without the page come from the same run.
 */

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '10000' },
    requests: { type: 'string', default: '2000' },
    json: { type: 'boolean', default: false },
  },
});
const [nodes, requests] = [Number(values.nodes), Number(values.requests)];

const WORDS = 'parser retries timeout invoice gateway schema ledger cursor webhook replica shard digest quorum'.split(
  ' ',
);
const PART = 2_000;
const SEARCHES = 200;
/** The engine lists no more at once. */
const MOST_LISTED = 10_000;
/** In the browser, letter by letter. */
const TYPED = ['gateway of service 4711', 'which port has the shard', 'invoice retries', 'ledger of service 90'];
const TURNS = 10;
const BLOCKS = 10;
const SAMPLES = 50;

const stage = await openStage(0, { COMET_CC_UI_PORT: '0', COMET_CC_LEDGER_RECEIPTS: String(requests) });
try {
  const report = await measure();
  if (values.json) console.log(JSON.stringify(report, null, 2));
  else print(report);
} finally {
  await stage.close();
}

async function measure() {
  const { daemon, ways } = stage;
  const client = engineClient(homePaths(daemon.home).engineSocket);
  const file = path.join(daemon.home, 'nodes.jsonl');
  // A busy machine takes longer for all of them than a command waits.
  for (let from = 0; from < nodes; from += PART) {
    await writeFile(file, archive(from, Math.min(PART, nodes - from)));
    await daemon.commandMs(['memory', 'import', file, '--as', 'export', '--yes']);
  }
  // A library without a page or task has no index to show.
  await daemon.commandMs(['task', 'add', 'Rotate the signing key']);
  await sendRequests(ways.ours);
  await daemon.flush();
  const socketMs = await searches((query) => client.call('nodes/search', { query, top: 20 }));
  // As many requests as while the page is measured: the heap grows with them, whether a page is open or not.
  const warmed = await open(ways.ours);
  for (let sent = 0; sent < 2 * BLOCKS * SAMPLES; sent += 1) await timed(warmed, lone(85_000));
  warmed.destroy();
  await after(2_000);
  const closed = (await daemon.rss()).engine;
  const browser = await signIn((await client.call('ui/open', {})).url);
  const viewsMs: Record<string, number> = {};
  const bytes: Record<string, number> = {};
  for (const view of ['ui/overview', 'ui/savings', 'ui/graph', 'ui/search', 'ui/health'] as const) {
    const fromMs = nowMs();
    const { body } = await browser.post(
      view,
      view === 'ui/search' ? { query: '', limit: Math.min(nodes, MOST_LISTED) } : {},
    );
    viewsMs[view] = nowMs() - fromMs;
    bytes[view] = body.length;
  }
  const pageMs = await searches((query) => browser.post('ui/search', { query, limit: 50 }));
  await after(2_000);
  const opened = (await daemon.rss()).engine;
  const latency = await comparePage(ways.ours, browser);
  const followed = (await daemon.rss()).engine;
  const { url } = await client.call('ui/open', {});
  const chromium = MISSING === '' ? await measureBrowser(url, TYPED) : null;
  return {
    ...{ node: process.version, nodes: (await daemon.status()).nodes, requests },
    search_ms: { page: spread(pageMs), socket: spread(socketMs) },
    views_ms: viewsMs,
    views_bytes: bytes,
    rss_mb: { closed, opened, followed },
    first_byte_ms: latency,
    /** Null where there is no browser. */
    chromium,
  };
}

function archive(from: number, count: number): string {
  const lines = Array.from({ length: count }, (_, place) => {
    const at = from + place;
    const id = (place: number): string => `mem_20260101_000000_${place.toString(16).padStart(6, '0')}`;
    const words = [at, at * 7 + 1, at * 13 + 2].map((place) => WORDS[place % WORDS.length]);
    const when = new Date(Date.UTC(2026, 0, 1) + at * 60_000).toISOString();
    return {
      ...{ node_id: id(at), kind: 'turn', session_id: `s${Math.floor(at / 50)}`, project: `/work${at % 20}` },
      ...{ author: { by: 'rules' }, origin: 'user', compaction_reason: 'forced', valid_from: when, created_at: when },
      summary: `The ${words.join(' and the ')} of service ${at} listens on port ${1_000 + (at % 60_000)}.`,
      trigger: `when the ${words[0]} of service ${at} fails`,
      topic_tags: [words[0]],
      links: at === 0 ? [] : [id(Math.floor(at / 2))],
    };
  });
  return [{ 'comet-cc-export': 2 }, ...lines.map((node) => ({ node }))].map((line) => JSON.stringify(line)).join('\n');
}

async function sendRequests(way: Way): Promise<void> {
  const socket = await open(way);
  for (let sent = 0; sent < requests; ) {
    const conversation = createConversation(2_000, 1_000);
    for (let turn = 0; turn < 2 * TURNS && sent < requests; turn += 1, sent += 1)
      await timed(socket, conversation.next());
  }
  socket.destroy();
}

/** As someone types: each query one letter longer. */
async function searches(ask: (query: string) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let at = 0; at < SEARCHES; at += 1) {
    const text = `${WORDS[at % WORDS.length]} of service ${at * 37}`;
    const query = text.slice(0, 3 + (at % (text.length - 2)));
    const fromMs = nowMs();
    await ask(query);
    times.push(nowMs() - fromMs);
  }
  return times;
}

/** Blocks of requests with and without a page that follows and reads again what changed, in turn. */
async function comparePage(way: Way, browser: Awaited<ReturnType<typeof signIn>>) {
  const times = { without: [] as number[], with: [] as number[] };
  const socket = await open(way);
  for (let block = 0; block < 2 * BLOCKS; block += 1) {
    const page = block % 2 === 0 ? null : openPage(browser);
    await after(500);
    for (let at = 0; at < SAMPLES; at += 1) {
      const { firstByteMs } = await timed(socket, lone(85_000));
      times[page === null ? 'without' : 'with'].push(firstByteMs);
    }
    page?.close();
  }
  socket.destroy();
  return { without_page: spread(times.without), with_page: spread(times.with) };
}

function openPage(browser: Awaited<ReturnType<typeof signIn>>) {
  const events = followUi(browser.port, browser.cookie);
  let seen = 0;
  const timer = setInterval(() => {
    const { length } = events.text();
    if (length > seen) void browser.post('ui/overview', {});
    seen = length;
  }, 250);
  return {
    close() {
      clearInterval(timer);
      events.close();
    },
  };
}

function print(report: Awaited<ReturnType<typeof measure>>): void {
  const ms = (times: { p50: number; p95: number }): string =>
    `p50 ${times.p50.toFixed(2)}, p95 ${times.p95.toFixed(2)} ms`;
  const { search_ms, first_byte_ms, rss_mb } = report;
  console.log(`${report.nodes} memories, ${report.requests} requests, Node ${report.node}`);
  console.log(`search from the page  ${ms(search_ms.page)}; by the socket ${ms(search_ms.socket)}`);
  for (const [view, taken] of Object.entries(report.views_ms)) {
    console.log(`${view.padEnd(21)} ${taken.toFixed(0)} ms, ${Math.round((report.views_bytes[view] ?? 0) / 1_024)} KB`);
  }
  console.log(
    `engine                ${rss_mb.closed} MB, ${rss_mb.opened} MB once the page was open, ${rss_mb.followed} MB after it followed`,
  );
  console.log(
    `first byte            ${ms(first_byte_ms.without_page)}; while a page is open ${ms(first_byte_ms.with_page)}`,
  );
  console.log(`added at p50          ${(first_byte_ms.with_page.p50 - first_byte_ms.without_page.p50).toFixed(2)} ms`);
  if (report.chromium === null) console.log(`no figures of a browser: ${MISSING}`);
  else printBrowser(report.chromium, ms);
}

function printBrowser(
  { version, first_view_ms, search, graph, tab }: BrowserFigures,
  ms: (times: { p50: number; p95: number }) => string,
): void {
  const busy = os.loadavg()[0]?.toFixed(1) ?? '';
  console.log(`\nChromium ${version}, WebGL in software: frames are a lower bound. Load average ${busy}`);
  for (const [view, each] of Object.entries(first_view_ms)) {
    console.log(`first view, ${view.padEnd(9)} ${ms(each.ms)}; ${each.cpuMs.toFixed(0)} ms CPU of the page`);
  }
  console.log(`letter to result      ${ms(search.keystroke_ms)}`);
  console.log(`  of it the engine    ${ms(search.server_ms)}`);
  console.log(`  of it the page      ${ms(search.page_ms)}`);
  console.log(`typed fluently        ${search.fluent_ms.toFixed(0)} ms from the last letter`);
  console.log(
    `graph                 arranged after ${graph.arranged_ms} ms, pans at ${graph.frames_per_second} frames/s`,
  );
  const { page, drawing } = graph.cpu_ms;
  console.log(`  CPU of each frame   ${page.toFixed(1)} ms the page, ${drawing.toFixed(1)} ms the drawing`);
  console.log(`tab with the graph    ${tab.process} MB, ${tab.heap} MB of it JavaScript`);
}
