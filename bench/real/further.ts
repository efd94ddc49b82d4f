/**
 * Further rewordings of other turns, and further questions that nothing answers: rules of the filter are chosen on these,
 * and judged on those of `questions.ts`. Each names the session and the place of its turn, and a pattern of the answer.
 */
export interface Further {
  /** Beginning of the session's id. */
  readonly session: string;
  readonly at: number;
  readonly prompt: string;
  readonly answer: string;
}

const REWORDED: readonly (readonly [session: string, at: number, prompt: string, answer: string])[] = [
  [
    '00ef13bd',
    3,
    'if someone sets just their address but no name in the repository config, where does the missing half come from',
    'global',
  ],
  [
    '0276a600',
    9,
    'why did garbage numbers appear when a picture or other non-text was in the working copy, and what stops it now',
    'null-byte|binary',
  ],
  [
    '0276a600',
    18,
    "the end to end script couldn't compile inside the temp dir, how does it obtain the program now",
    '[Bb]uilds the binary|binary fresh',
  ],
  ['08940314', 1, 'where do we look to learn that somebody else is working in parallel', 'entire-sessions'],
  [
    '08940314',
    6,
    'after midnight the conversation got a new identifier because the day changed, what was the remedy',
    'existing session|reusing existing state|preserv',
  ],
  ['08940314', 16, "why couldn't the identifier helpers move next to the domain they belong to", 'circular|cycle'],
  [
    '0bb9a2d9',
    2,
    'did we think tidy-up deserves a spot among the main commands',
    'session clean|entire session cleanup|niche',
  ],
  [
    '0bb9a2d9',
    7,
    'is housekeeping of any use to people whose strategy commits by itself',
    'only relevant for manual|manual-commit',
  ],
  ['130d7b7e', 0, 'how do messages in the log say which assistant produced them', 'WithAgent|agentKey|agent name'],
  [
    '15f99783',
    5,
    'what goes wrong when history gets replayed while the assistant is still busy with one request',
    'migration only happens|race|BaseCommit',
  ],
  [
    '15f99783',
    10,
    'could deleting the temp ref and replaying history collide when the bot does both in one go',
    'No race|gracefully|fresh shadow',
  ],
  ['170cebcc', 3, 'how many mandatory inputs has the form for reporting defects', '5 required'],
  [
    '1c38adc0',
    2,
    'is shelling out ok for seeing whether there are local edits, although the library is preferred elsewhere',
    'HasUncommittedChanges|git CLI is the right',
  ],
  [
    '20b81bf8',
    1,
    "which names of file changing tools did google's assistant turn out not to have",
    'edit_file|save_file',
  ],
  ['21a2e002', 2, 'with which terminal UI library was the tree browser made', 'Bubbletea'],
  [
    '21a2e002',
    8,
    'the words for small units and big units clashed, which name was proposed for one question with its reply',
    'Turn',
  ],
  [
    '2cfdacb8',
    0,
    'how can contributors working on a copy get their metadata pushed to the original project',
    'push_sessions_remote',
  ],
  [
    '2cfdacb8',
    5,
    'workflow of a contribution got forbidden when pushing, which trigger lets it write',
    'pull_request_target',
  ],
  ['2cfdacb8', 12, 'the tick box about token rights is greyed out, who can change that', '[Oo]rg'],
  [
    '3a782158',
    3,
    'where did we write down for future assistants that hashes are not stable',
    'CLAUDE.md|architectural note',
  ],
  ['3a782158', 9, 'how to indicate in the listing that work already landed on main', '\\(merged\\)'],
  [
    '44df7d08',
    1,
    'why not let recording continue for the second conversation after it was warned',
    'interleaved|same shadow branch',
  ],
  [
    '44df7d08',
    7,
    'what text helps somebody recognise the other running conversation in the notice',
    'initial prompt|first prompt',
  ],
  [
    '44df7d08',
    21,
    'where do the files of the earlier conversation go when another one is added to the same commit',
    'numbered subfolder',
  ],
  [
    '569aed7b',
    2,
    'running setup again when the shared configuration file is there already: what choice does one get',
    'settings.local.json|Use local settings',
  ],
  ['6113e919', 2, 'does merging on the website into one commit keep the footer lines', 'preserve'],
  [
    '6113e919',
    7,
    'idea: compute one time, at the moment of committing, how much came from the human',
    'one-shot|at commit time|Attribution: 89',
  ],
  [
    '6113e919',
    20,
    'the numbers counted entire files rather than what was changed, what happened with that',
    'baseTree|only lines changed',
  ],
  ['6113e919', 28, 'why must every temporary snapshot hold everything and not just the newest delta', 'cumulative'],
  [
    '6113e919',
    33,
    'percentages were missing without any explanation when something failed, did we make that visible',
    'logging|DEBUG',
  ],
  [
    '63784323',
    16,
    'how much of the former work must survive so that we stay on the same numbered ref',
    'single line|any',
  ],
  [
    '85f99978',
    4,
    'when should the installer run so that commits in the middle of a request are seen',
    'captureInitialState|user-prompt-submit',
  ],
  [
    '8ab54260',
    3,
    "the bot's remark on how arguments for permitted tools were handed over, how was it solved",
    'separate args',
  ],
  ['a09df891', 3, 'how can tests pretend that the program is not in PATH', 'LookPath'],
  [
    'ab8c5aa0',
    0,
    'identifiers that are longer than allowed were partially accepted, what restricts them now',
    '\\{12\\}',
  ],
  ['b00b80af', 8, 'which remarks are displayed next to each restored conversation', 'checkpoint is newer|unchanged'],
  [
    'b25a8b6e',
    3,
    'explain how a half filled state could come into being when two people start',
    'Concurrent Session Warning|AgentType',
  ],
  ['c35cf82b', 12, 'does either mode cut off long conversations before saving them', 'full transcript'],
  ['cd46624d', 0, 'why did two hand made commits in a row receive an identical id', 'PendingCheckpointID'],
  [
    'dc577197',
    5,
    'a leftover ref of a conversation that has no state on disk: what happens at the start of a new one',
    '[Oo]rphaned|reset',
  ],
  [
    'f4237e82',
    7,
    'files left out first and committed later on: does their record end at the earlier request',
    'up to the current moment|full session|commit time',
  ],
  [
    'f4237e82',
    19,
    'can it be told which part of an edited file was already committed by looking at its content',
    '[Cc]ontent-[Bb]ased|shadow branch has the full content',
  ],
  ['f736da47', 1, 'who is the single owner now of the checks against path traversal', 'validation'],
  [
    'fdd24234',
    10,
    'by which measure does it decide that a line carries no meaning, in any programming language',
    '40%|alphanumeric',
  ],
  [
    'fdd24234',
    19,
    'a boilerplate first line made the test believe that work was kept, what is demanded now',
    '2 matching',
  ],
];

export const FURTHER: readonly Further[] = REWORDED.map(([session, at, prompt, answer]) => ({
  session,
  at,
  prompt,
  answer,
}));

export const FURTHER_HARD: readonly string[] = [
  'which port does the entire daemon listen on',
  'how do we rotate the api key for the telemetry backend',
  'what is the maximum size of a transcript before entire compresses it',
  'which vscode extension shows checkpoints in the gutter',
  'how long does the homebrew formula update take after a release',
  'what did we decide about encrypting metadata.json at rest',
  'which database stores the checkpoint index',
  'who reviews translations of the error messages',
  'why does entire resume refuse to run inside docker',
  'how many retries does the webhook for finished sessions make',
  'what is the name of the slack channel for incident reports',
  'which linter rule forbids naked returns in the strategy package',
  'how do we bill teams that use more than ten agents',
  'does the dashboard show attribution per pull request',
  'what is the rollback procedure when a bad version of the cli is published',
  'how do I import checkpoints from another tool',
  'which bug made windows paths break in rewind',
  'when do we drop support for go 1.21',
  'how is the session title translated for japanese users',
  'what is the quota of github api calls in the sync workflow',
  'which flag makes entire rewind skip the confirmation',
  'how are merge conflicts on the metadata branch resolved between two machines',
  'what happens if the disk is full while a checkpoint is written',
  'which accessibility settings has the interactive list',
  'how do we sign the commits on the shadow branch',
  'what is the default theme of the terminal ui',
];
