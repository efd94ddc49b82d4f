/** One row of the fault matrix: what may happen, what must hold then, and where that is tested. */
export interface Row {
  readonly row: number;
  readonly fault: string;
  readonly promise: string;
  /** The file whose test is named `row NN: …`; null where nothing can be tested yet, and `note` says why. */
  readonly file: string | null;
  /** Where the promise is weaker, other, or proven in another way than the row says. */
  readonly note?: string;
  /** In place of a test: `.ci/run` runs it and fails with it. */
  readonly command?: string;
}

const engine = 'test/faults/engine.test.ts';
const guard = 'test/faults/guard.test.ts';
const wire = 'test/faults/wire.test.ts';
const memory = 'test/faults/memory.test.ts';
const kills = 'test/faults/kill-points.test.ts';
const disk = 'test/faults/disk.test.ts';
const frontDoor = 'test/integration/proxy/guard.test.ts';
const relay = 'test/integration/proxy/http/faults.test.ts';
const exchange = 'test/integration/proxy/http/exchange.test.ts';
const load = 'test/e2e/load.test.ts';
const lance = 'test/integration/memory/search/lancedb/lance-index.test.ts';
const leaf = 'test/integration/certs/ensure.test.ts';
const daemon = 'test/e2e/cli-daemon.test.ts';

export const ROWS: readonly Row[] = [
  row(1, 'rewriter throws', 'request goes out as it came, or as its plan has it', engine),
  row(2, 'rewriter hangs', 'as 1 at its deadline', engine, 'recall has 150 ms, all of the rewriter 400 ms'),
  row(3, 'engine `kill -9`, idle', 'next CONNECT held for the new engine; tunnelled if none in 2 s', engine),
  row(4, 'engine `kill -9`, mid-stream', 'socket closed, nothing made up; a retry is answered', engine),
  row(5, 'engine segfaults or aborts', 'as 4', engine),
  row(6, 'engine out of memory', 'as 4; restarted', engine),
  row(7, 'engine accepts, never answers', 'tunnelled after 2 s', 'test/integration/proxy/guard/engine-process.test.ts'),
  row(8, "engine's event loop blocked", 'heartbeat missed; tunnelled', engine),
  row(9, 'engine crash loop', 'five exits a minute end it; tunnelled at once; doctor says so', engine),
  row(
    10,
    'guard killed',
    'started again on its port by `comet-cc run`; a retry is answered',
    'test/e2e/cli-run.test.ts',
  ),
  row(11, 'port taken by a stranger', 'clear error, nobody killed', 'test/integration/proxy/guard/main.test.ts'),
  row(12, 'daemons race', 'one wins, every start ends with 0', daemon),
  row(13, 'what a killed daemon left', 'taken over', daemon),
  row(14, 'process id reused', 'neither trusted nor killed', guard),
  row(
    15,
    'stop with streams open',
    'new work tunnels; streams drain ≤30 s',
    'test/integration/proxy/guard/engine-process.test.ts',
  ),
  row(16, 'second SIGTERM', 'exit ≤1 s; the store opens', guard),
  row(17, 'inherited listening socket', 'no child holds the port', guard),
  row(18, 'client resets before or after CONNECT', 'no crash, no leak', frontDoor),
  row(19, 'garbage instead of TLS', 'that connection is closed, nothing else', relay),
  row(20, 'truncated ClientHello', 'closed at 10 s', relay, 'tested with a shorter time'),
  row(21, '`CONNECT constructor`, `__proto__`', '502, alive', frontDoor),
  row(22, '`CONNECT ../../x`, port 0 or 99999', '400, no file', frontDoor),
  row(23, 'IPv6 authority', 'tunnels', frontDoor),
  row(24, 'CONNECT to our own ports', '403, no loop', frontDoor),
  row(25, 'no or a wrong proxy token', '407', frontDoor),
  row(26, 'Host other than the target inside TLS', '421, upstream hears nothing', relay),
  row(27, 'two lengths, smuggling', '400, upstream hears nothing', relay),
  row(
    28,
    'slowloris',
    'closed at 60 s; others served',
    'test/integration/proxy/http/slow-clients.test.ts',
    'tested with a shorter time',
  ),
  row(29, '1,000 idle tunnels', 'a new request ≤50 ms', load, 'held to 500 ms on a busy machine'),
  row(30, 'client aborts mid-answer', 'upstream closed ≤50 ms; turn aborted', relay),
  row(31, 'client aborts mid-upload', 'nothing forwarded, no orphan', relay),
  row(32, 'slow reader', 'bounded buffer', relay, 'kernel buffers of four sockets included: < 24 MB of 48'),
  row(33, '32 MB body', 'forwarded whole; over the cap unread', exchange),
  row(34, 'invalid or unknown JSON', 'goes out as it came, kept nowhere', 'test/e2e/bad-input.test.ts'),
  row(35, 'gzip, br, zstd bodies', 'bytes intact; memory decodes', exchange),
  row(36, 'unknown event, split UTF-8', 'byte-equal', wire),
  row(37, 'upstream refuses, has no address, keeps silent, breaks TLS', '502 with a JSON error, fast', relay),
  row(38, 'upstream silent 10 min', 'no timeout from us', wire),
  row(39, 'upstream resets mid-stream', 'socket destroyed, no made-up end; not kept as whole', relay),
  row(40, '401, 429, 529', 'verbatim after one upstream call', exchange),
  row(41, '401, token refresh', 'verbatim; no bearer below the home', wire),
  row(42, 'POST fails after it was sent', 'never repeated by us', relay),
  row(43, 'client retries', 'one turn kept', wire, 'a try that was answered whole stays too, as a rewind does'),
  row(44, 'upstream certificate not trusted', 'refused, never downgraded', relay),
  row(45, 'WebSocket upgrade', '501; alive', relay),
  row(46, 'corporate proxy', 'chained, tunnels included', 'test/integration/proxy/guard/upstream-proxy.test.ts'),
  row(47, 'our own `claude -p`', 'goes out as it came, marker stripped; kept nowhere', wire),
  row(
    48,
    '`claude -p` hangs, fails, floods',
    'killed in time; local nodes stand in',
    'test/e2e/bad-model.test.ts',
    '30 s for the sensor and 180 s for the compacter; tested with 3 s',
  ),
  row(
    49,
    'killed at any write',
    'valid after replay, nothing acknowledged lost',
    kills,
    '450 seeded points, by a kill or with the machine: journal, node files, ledger, plans, settings edit; real kills in test/integration/memory',
  ),
  row(50, 'torn journal tail', 'every whole turn read, tail cut', 'test/integration/memory/storage/turn-log.test.ts'),
  row(
    51,
    'disk full',
    'memory off and named, requests go on; works again with room',
    disk,
    'a tidying of the index that failed stays named until the restart',
  ),
  row(52, 'file too large, no descriptors', 'as 51', disk),
  row(53, 'read-only home', 'requests go on; doctor says it', disk),
  row(54, 'index damaged, manifest deleted', 'set aside, rebuilt', lance),
  row(55, 'two writers', 'second refused', guard),
  row(
    56,
    'killed while the index is tidied',
    'an earlier version opens, nothing acknowledged lost',
    'test/faults/index-kill.test.ts',
  ),
  row(
    57,
    'index backlog',
    'bounded queue, which refuses instead of growing; turns are kept and may be cut at once',
    memory,
    'the queue in test/integration/memory/lance-index.test.ts',
  ),
  row(58, 'clock a year off', 'order by arrival; nothing expires', memory),
  row(59, 'sleep and wake', 'healthy ≤2 s', 'test/e2e/cli-restart.test.ts'),
  row(60, 'leaf expired', 'never served, issued anew', leaf),
  row(61, 'key missing, open to others, behind a link', 'never served', leaf),
  row(62, 'rotation with old sessions', 'served through the overlap', 'test/integration/certs/rotation.test.ts'),
  row(63, 'flood of log lines', '≤50 MB, no bearer', 'test/unit/common/log.test.ts'),
  row(64, 'killed while the store is upgraded', 'old or new, never mixed', kills, '50 seeded points'),
  row(
    65,
    'older program on a newer store',
    'nothing is written; requests go on',
    disk,
    'plans in force are replayed; memory is not read',
  ),
  row(
    66,
    'settings.json that is no plain JSON',
    'untouched, said',
    'test/integration/install/claude-code/ca-settings.test.ts',
  ),
  row(67, 'DNS rebinding, foreign Origin', '403', 'test/integration/engine/api/auth.test.ts'),
  row(68, 'CSRF by a simple POST', '403 or 415, no effect', 'test/integration/engine/api/auth.test.ts'),
  row(
    69,
    'stored XSS',
    'inert',
    'test/e2e/terminal.test.ts',
    'no page shows memory: what is tested is the same fault in a terminal, control sequences in stored text',
  ),
  row(70, 'socket squatted, symlink', 'refused', 'test/integration/engine/api/server.test.ts'),
  row(
    71,
    'poisoned page or tool result',
    'never passive; fence intact',
    'test/integration/memory/ingest/poisoning.test.ts',
  ),
  row(72, 'secret split over deltas', 'redacted everywhere', 'test/integration/memory/ingest/split-secret.test.ts'),
  row(73, '`<private>` unclosed or nested', 'redacted to the end', 'test/unit/redact.test.ts'),
  row(
    74,
    'malformed input of a hook or of MCP, or an answer of the engine',
    'exit 0, nothing said, ≤2 s',
    'test/faults/input.test.ts',
    'a server over stdio lives as long as its input: it ends with 0 and speaks its protocol only',
  ),
  {
    row: 75,
    fault: 'hours of mixed work',
    promise: 'flat memory and descriptors',
    file: null,
    command: 'npm run soak -- --seconds 45',
    note: 'the slope over 45 seconds of load; `npm run soak -- --hours N` allows 4 KB of memory for each turn kept',
  },
];

function row(number: number, fault: string, promise: string, file: string | null, note?: string): Row {
  return { row: number, fault, promise, file, ...(note === undefined ? {} : { note }) };
}
