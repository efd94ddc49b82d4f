import { BROWSER_MISSING } from '../helpers/browser.ts';

interface Proof {
  readonly file: string;
  /** Name of the test in that file, as the source has it. */
  readonly test: string;
}

/** One row of the fault matrix: what may happen, what must hold then, and where that is tested. */
export interface Row {
  readonly row: number;
  readonly fault: string;
  readonly promise: string;
  /** All of them must pass. */
  readonly proofs: readonly Proof[];
  /** Where the promise is weaker, other, or proven in another way than the row says. */
  readonly note?: string;
  /** In place of a test: `.ci/run` runs it and fails with it. */
  readonly command?: string;
  /** Elsewhere its tests are skipped. */
  readonly needs?: keyof typeof NEEDS;
}

const isLinux = process.platform === 'linux';
/** Whether this machine has it. */
export const NEEDS = {
  Linux: isLinux,
  'root on Linux': isLinux && process.getuid?.() === 0,
  Chromium: BROWSER_MISSING === '',
} as const;

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
const slowClients = 'test/integration/proxy/http/slow-clients.test.ts';
const model = 'test/e2e/bad-model.test.ts';
const shareFaults = 'test/e2e/share-faults.test.ts';
const redTeam = 'test/integration/memory/ingest/red-team.test.ts';
const lance = 'test/integration/memory/search/lancedb/lance-index.test.ts';
const leaf = 'test/integration/certs/ensure.test.ts';
const daemon = 'test/e2e/cli-daemon.test.ts';
const restart = 'test/e2e/cli-restart.test.ts';

/** The test of each row, by its number. */
const TESTS: Readonly<Record<number, string>> = {
  1: 'sends the request unchanged when it throws',
  2: 'sends the request unchanged when it exceeds its deadline',
  3: 'holds a CONNECT for the next engine when it was idle',
  4: 'closes the stream on %s, answers the retry, and starts another engine',
  5: 'closes the stream on %s, answers the retry, and starts another engine',
  6: 'closes the stream when it runs out of memory, and starts another engine',
  7: 'tunnel after 2 s when the engine accepts a connection and never answers',
  8: 'is tunneled past while its event loop is blocked',
  9: 'is tunneled past at once, and doctor reports it',
  10: 'a killed guard is back on its port within 2 s',
  11: 'names a port that another program holds, and leaves that program alone',
  12: 'leaves one daemon when many starts race, and all of them succeed',
  13: 'takes over the files of a killed daemon',
  14: 'stop kills no process that reuses the recorded process id',
  15: 'finish a running stream after a stop, and tunnel new requests',
  16: 'a second SIGTERM ends a draining daemon at once, and its store opens again',
  17: 'no child of the guard inherits its listening socket',
  18: 'survives a storm of cut connections among hundreds of idle tunnels, and leaks none',
  19: 'is disconnected when it sends garbage instead of TLS',
  20: 'a client whose ClientHello never ends is disconnected after 10 s',
  21: 'survives CONNECT %s',
  22: 'answers 400 to CONNECT %s and writes no file',
  23: 'tunnels bytes both ways over IPv4 and IPv6, with half-closed connections',
  24: 'refuses to connect to itself under any name',
  25: 'rejects %s',
  26: 'is refused for %s, and never reaches the upstream',
  27: 'is refused for %s before it reaches the upstream',
  28: 'clients whose headers never end are disconnected while others are served',
  29: 'serves a new request at once among a thousand idle tunnels, and leaks none',
  30: 'in the middle of a stream ends the upstream request within 50 ms, and its turn is aborted',
  31: 'in the middle of an upload that would be parsed forwards nothing',
  32: 'or reads slowly holds back the upstream instead of filling memory',
  33: 'of 32 MB arrive whole, parsed or beyond the cap',
  34: '%s is forwarded unchanged and stored nowhere',
  35: 'decodes %s while the client gets the original bytes',
  36: 'with unknown events and split characters arrives byte for byte',
  37: 'that %s gives a fast 502 with a hint',
  38: 'may be silent for ten minutes, before its head and in its middle',
  39: 'that cuts the stream cuts the client, adds no event, and stores no whole turn',
  40: 'return a %i verbatim after one upstream request',
  41: 'of 401 and its retry with a fresh token pass verbatim, and no token is stored',
  42: 'that dies after the request was sent gets no second request',
  43: 'that the client repeats until it is answered is one turn',
  44: 'with an untrusted certificate gets no request',
  45: 'is carried both ways byte for byte, and ends with either side',
  46: 'carry other hosts and, without an engine, the target (login %s)',
  47: 'from our own claude -p loses its mark, is not rewritten, and is no turn',
  48: '%s, requests continue, rules write the nodes, and status and doctor name it',
  49: 'a store killed at any of 450 writes is readable and loses nothing acknowledged',
  50: 'cut at any offset keeps every whole turn and appends the next one',
  51: 'that is full costs new memories only, is named, and is used again once it has room',
  52: 'that reaches its limits for file size and open files loses memory only, and recovers',
  53: 'that becomes read-only costs memory only, and doctor names it',
  54: 'a damaged or missing file gives a rebuilt index, and the damaged one is kept',
  55: 'a second engine on the same home is refused, and the first continues',
  56: 'an index killed during compaction keeps every acknowledged row',
  57: 'keeps and cuts turns while the index stalls',
  58: 'keeps order and loses nothing when the clock jumps a year',
  59: 'a daemon is healthy within 2 s after the machine slept',
  60: 'replaces an expired leaf',
  61: 'is not served with a %s',
  62: 'sessions with the old, both or the new root are served through a rotation',
  63: 'a flood of errors keeps a log below 25 MB, private, without tokens, with the newest line',
  64: 'a home killed at any of 50 writes of an upgrade is old or new, and an older program refuses it in between',
  65: 'the plans of a home that a newer program wrote are replayed, and the home is not written to',
  66: 'leaves %j untouched and reports it',
  67: 'refuses %s as DNS rebinding and does nothing',
  68: 'refuses %s as a forged request and does nothing',
  69: 'stored control sequences do nothing in a terminal, in any command or MCP tool',
  70: 'refuses a path that is a link or a file, and leaves it unchanged',
  71: 'no payload is in a system channel',
  72: 'a secret split over deltas and socket reads is not stored',
  73: '%s becomes %s',
  74: 'malformed input of a hook or MCP server: %s',
  76: 'sessions continue through a plain tunnel after a stop, and start takes over from it',
  77: 'an index that vanishes or is damaged silences recall, is named, and is rebuilt as soon as that is possible',
  78: 'a turn that ends the engine when it is read or compacted is skipped after the second time, and named',
  79: '%s: says so, loses nothing and doubles nothing',
  80: 'go on from a copy of a home as two machines, and lose nothing',
  81: 'gets in as external text with its name, or not at all',
  82: 'lost with the home keeps the port for sessions, until a new home is there',
  83: 'after an update the engine takes the new files once commands have ended, and no request passes without memory',
  84: 'that a pause or another network may have cut off is not asked over a connection from before',
};

const replayed = 'a rewriter that throws or exceeds its deadline leaves the plan in force';
const page = { file: guard, test: 'no port of the daemon answers a web page' };
const ui = 'test/integration/engine/api/ui.test.ts';
const refused = { file: ui, test: 'refuses %s and does nothing' };

/** Further tests of a row. */
const MORE: Readonly<Record<number, readonly Proof[]>> = {
  1: [{ file: engine, test: replayed }],
  2: [{ file: engine, test: replayed }],
  3: [{ file: engine, test: 'is tunneled past after 2 s' }],
  4: [
    {
      file: 'test/integration/proxy/guard/engine-process.test.ts',
      test: 'close every connection that a killed engine had not taken over yet',
    },
  ],
  10: [
    {
      file: 'test/e2e/cli-run.test.ts',
      test: 'starts a daemon that was killed whole again on the same port while the command runs',
    },
  ],
  48: [
    { file: model, test: 'a user waits 30 s for the sensor and 180 s for the summarizer' },
    { file: model, test: 'works again, what stood in is rewritten by the model, and the error is gone' },
  ],
  57: [{ file: lance, test: 'a full queue refuses rows instead of growing, and accepts rows again later' }],
  67: [page, refused],
  68: [page, refused],
  69: [
    { file: ui, test: 'returns hostile text as JSON only' },
    { file: ui, test: 'sends a strict policy with every answer' },
    { file: 'test/ui/views.test.ts', test: 'never runs what memory says, in any field' },
  ],
  71: [
    { file: redTeam, test: '60 carriers and 5 payloads each are tried, and every payload is in memory' },
    { file: redTeam, test: 'no payload is of origin user or assistant' },
  ],
  79: [{ file: shareFaults, test: '%s: everything arrives' }],
  80: [
    {
      file: 'test/unit/memory/share/service.test.ts',
      test: 'of a home restored from a backup makes it a new machine and loses nothing',
    },
  ],
  81: [
    { file: shareFaults, test: 'neither removes nor replaces what is not theirs' },
    { file: shareFaults, test: 'is not read any more once the key has changed' },
  ],
  82: [
    { file: frontDoor, test: 'lost with the home ends a guard that no session uses' },
    {
      file: restart,
      test: 'an open session continues after an uninstall, and the port closes with it; a new start gets the port',
    },
    { file: 'test/integration/engine/api/server.test.ts', test: 'leaves the socket of the engine that took its place' },
  ],
  83: [
    { file: restart, test: 'a session ends with its own exit code though an upgrade removed the program meanwhile' },
    { file: restart, test: 'a start replaces a daemon whose files an update removed' },
  ],
  84: [
    { file: relay, test: 'that is slow to shake hands is waited for longer than for a connection' },
    { file: frontDoor, test: 'lets the kernel probe the other side of a silent tunnel' },
    {
      file: 'test/integration/proxy/guard/upstream-proxy.test.ts',
      test: 'wait longer for its answer than for a connection to it',
    },
  ],
};

const NEEDED: Readonly<Record<number, Row['needs']>> = {
  17: 'Linux',
  51: 'root on Linux',
  52: 'root on Linux',
  53: 'root on Linux',
  67: 'Linux',
  68: 'Linux',
  69: 'Chromium',
  84: 'Linux',
};

export const ROWS: readonly Row[] = [
  row(1, 'rewriter throws', 'request goes out as it came, or as its plan has it', engine),
  row(
    2,
    'rewriter hangs',
    'as 1 at its deadline',
    engine,
    'recall has 150 ms and the rewriter 400, the first prompt and a cut 450 more',
  ),
  row(
    3,
    'engine `kill -9`, idle',
    'next CONNECT held for the new engine, for 15 s at most; tunnelled after 2 s where one is silent',
    engine,
  ),
  row(4, 'engine `kill -9`, mid-stream', 'socket closed, nothing made up; a retry is answered', engine),
  row(5, 'engine segfaults or aborts', 'as 4', engine),
  row(6, 'engine out of memory', 'as 4; restarted', engine),
  row(7, 'engine accepts, never answers', 'tunnelled after 2 s', 'test/integration/proxy/guard/engine-process.test.ts'),
  row(8, "engine's event loop blocked", 'heartbeat missed; tunnelled', engine),
  row(
    9,
    'engine crash loop',
    'five exits in ten minutes end it, with longer and longer pauses; tunnelled at once; doctor says so',
    engine,
  ),
  row(
    10,
    'guard killed',
    'started again on its port by its engine ≤2 s, by `comet-cc run` where both were killed; a retry is answered',
    guard,
  ),
  row(
    11,
    'port in use by another program',
    'clear error, the other program is left alone',
    'test/integration/proxy/guard/main.test.ts',
  ),
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
  row(20, 'truncated ClientHello', 'closed at 10 s', slowClients),
  row(21, '`CONNECT constructor`, `__proto__`', '502, alive', frontDoor),
  row(22, '`CONNECT ../../x`, port 0 or 99999', '400, no file', frontDoor),
  row(23, 'IPv6 authority', 'tunnels', frontDoor),
  row(24, 'CONNECT to our own ports', '403, no loop', frontDoor),
  row(25, 'no or a wrong proxy token', '407', frontDoor),
  row(26, 'Host other than the target inside TLS', '421, upstream hears nothing', relay),
  row(27, 'two lengths, smuggling', '400, upstream hears nothing', relay),
  row(28, 'slowloris', 'closed at 60 s; others served', slowClients, 'tested with a shorter time'),
  row(29, '1,000 idle tunnels', 'a new request within 500 ms (median of nine); none leaks', load),
  row(30, 'client aborts mid-answer', 'upstream closed ≤50 ms (median of nine); turn aborted', relay),
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
  row(45, 'WebSocket upgrade', 'carried unread; other protocols get 501', relay),
  row(46, 'corporate proxy', 'chained, tunnels included', 'test/integration/proxy/guard/upstream-proxy.test.ts'),
  row(47, 'our own `claude -p`', 'goes out as it came, marker stripped; kept nowhere', wire),
  row(
    48,
    '`claude -p` hangs, fails, floods',
    'killed after 30 s (sensor) or 180 s (summarizer); local nodes stand in until it works again',
    model,
    'killed after 8 s in the test',
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
    'killed while the index is optimized',
    'an earlier version opens, nothing acknowledged lost',
    'test/faults/index-kill.test.ts',
    'five kills between the begin and the end of an optimization',
  ),
  row(
    57,
    'index backlog',
    'bounded queue, which refuses instead of growing; turns are kept and may be cut at once',
    memory,
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
    'test/integration/install/claude-code/settings.test.ts',
  ),
  row(
    67,
    'DNS rebinding, foreign Origin',
    'the API and the dashboard answer 403; no other port answers',
    'test/integration/engine/api/auth.test.ts',
  ),
  row(
    68,
    'CSRF by a simple POST',
    'the API answers 415, the dashboard 403 or 415; no other port answers',
    'test/integration/engine/api/auth.test.ts',
  ),
  row(
    69,
    'stored XSS',
    'inert',
    'test/e2e/terminal.test.ts',
    'a real browser runs no text of memory, in any field of the dashboard, which gets texts as JSON under a policy without inline scripts; a terminal gets no control sequences',
  ),
  row(70, 'socket squatted, symlink', 'refused', 'test/integration/engine/api/server.test.ts'),
  row(
    71,
    'text that the user did not type, in 162 forms of the client and of tools',
    'in memory, never of origin user or assistant, in no system channel',
    redTeam,
    "five payloads each, over the real capture, compaction with `local`, recall and rendering; thirteen with the real client: `test/claude-code/carriers.test.ts`; that the user's prompts stay the user's: `test/integration/memory/ingest/typed-prompts.test.ts`; fences: `test/integration/memory/ingest/poisoning.test.ts`",
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
    proofs: [],
    command: 'npm run soak -- --seconds 45',
    note: 'the slope over 45 seconds of load; `npm run soak -- --hours N` allows 4 KB of memory for each turn kept',
  },
  row(76, '`stop` while sessions run', 'tunnelled until the last one has ended; `start` takes over', guard),
  row(
    77,
    'index folder removed or damaged while the engine runs',
    'recall is silent after three failures, which status and doctor say; rebuilt in the background',
    'test/e2e/bad-disk.test.ts',
  ),
  row(
    78,
    'a turn in the journal ends the engine',
    'skipped and named at the second time; kept; the others are read',
    'test/e2e/bad-disk.test.ts',
  ),
  row(79, 'shared storage gone, refused, full, torn, slow or flaky', 'said; nothing lost or doubled', shareFaults),
  row(
    80,
    'a copy or an old backup of a home that shares',
    'becomes a new machine; nothing lost or doubled',
    'test/e2e/share.test.ts',
  ),
  row(81, 'hostile teammate', 'external and labelled, or refused; changes nothing of others', shareFaults),
  row(
    82,
    'home moved, removed or replaced while sessions run',
    'sessions continue without memory on the same port until a start',
    frontDoor,
  ),
  row(
    83,
    'build replaced or removed while it runs',
    'the engine takes the new files once requests and commands have ended; a start replaces a daemon without files',
    restart,
  ),
  row(
    84,
    'connections dead without a word, slow networks',
    'no request over a connection from before a pause or from another network; tunnels end after 70 s; TLS has 60 s',
    relay,
  ),
];

function row(number: number, fault: string, promise: string, file: string, note?: string): Row {
  const proofs = [{ file, test: TESTS[number] as string }, ...(MORE[number] ?? [])];
  const needs = NEEDED[number];
  return {
    ...{ row: number, fault, promise, proofs },
    ...(note === undefined ? {} : { note }),
    ...(needs === undefined ? {} : { needs }),
  };
}
