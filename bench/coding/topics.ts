/** A kind of thing that is settled about a service: how it is said, answered and asked for. `{s}` is the service. */
export interface Topic {
  readonly name: string;
  /** Made of the dice; different for each service. */
  readonly value: (dice: Dice) => string;
  /** `{v}` is the value. */
  readonly said: readonly string[];
  readonly replied: readonly string[];
  /** Never in the words in which it was said. */
  readonly asked: readonly string[];
}

export interface Dice {
  /** From 0 to below `sides`. */
  roll(sides: number): number;
  pick<T>(list: readonly T[]): T;
}

export const SERVICES = (
  'billing warehouse checkout geocoder thumbnailer notifier ledger scheduler catalog gateway reporting onboarding ' +
  'inventory recommender crawler archiver translator payroll telemetry sandbox moderator invoicer router mailer'
).split(' ');

/** Nobody ever speaks of these. */
export const UNKNOWN_SERVICES =
  'blockchain podcast drone sauna karaoke satellite vineyard aquarium lottery horoscope'.split(' ');

const PEOPLE =
  'Ayşe Bruno Chiara Dmitri Elif Farid Greta Hiroshi Ines Jonas Katya Luis Mireille Nils Oksana Pavel'.split(' ');
const STORES = 'Postgres SQLite DynamoDB Cassandra Valkey ClickHouse'.split(' ');

export const TOPICS: readonly Topic[] = [
  {
    name: 'port',
    value: (dice) => String(3_000 + dice.roll(60_000)),
    said: ['Let {s} listen on {v} from now on.', 'Please move the {s} service to port {v}, the old one collides.'],
    replied: [
      '{s} binds to port {v} now; compose file and README agree.',
      'Done: {s} answers on :{v}, the port is in the compose file.',
    ],
    asked: ['Which port do I connect to for {s}?', 'On what port is {s} reachable?'],
  },
  {
    name: 'flag',
    value: (dice) =>
      `${dice.pick(['enable', 'use', 'allow'])}_${dice.pick(['fast', 'lazy', 'bulk', 'dual'])}_${dice.pick(['writes', 'paths', 'retries', 'reads'])}_${dice.roll(90) + 10}`,
    said: ['Put the new code of {s} behind the feature flag {v}.', 'The {s} rollout is guarded by {v}, off at first.'],
    replied: [
      'Wrapped it: with the flag {v} off {s} behaves as before.',
      'The flag {v} is checked once when {s} starts.',
    ],
    asked: ['What is the flag called that guards {s}?', 'Which feature flag switches the new {s} on?'],
  },
  {
    name: 'timeout',
    value: (dice) => `${dice.roll(90) * 100 + 1_050} ms`,
    said: ['Calls to {s} must give up after {v}.', 'Set the client timeout for {s} to {v}, longer waits pile up.'],
    replied: ['The {s} client now aborts, the timeout is {v}.', 'Timeout for {s} is {v}, with a test.'],
    asked: ['After how long does a call to {s} time out, what is the timeout?', 'What timeout does {s} have?'],
  },
  {
    name: 'owner',
    value: (dice) => dice.pick(PEOPLE),
    said: [
      '{v} takes over {s}; ask there before you change its schema.',
      '{v} told me that {s} may not be restarted in office hours.',
    ],
    replied: [
      'Noted: {v} is the owner to ask about {s}.',
      'I put {v} into CODEOWNERS as owner of {s}, to be asked first.',
    ],
    asked: ['Who is the owner of {s} now?', 'Whom do I ask before I touch {s}?'],
  },
  {
    name: 'store',
    value: (dice) => dice.pick(STORES),
    said: [
      'We decided on {v} for {s}, because the writes come in bursts.',
      '{s} keeps its data in {v}; the other candidates were too slow.',
    ],
    replied: ['Moved the database layer of {s} to {v}.', 'Recorded the decision: the database of {s} is {v}.'],
    asked: ['Which database does {s} use?', 'What did we decide on as database for {s}?'],
  },
  {
    name: 'config path',
    value: (dice) =>
      `config/${dice.pick(['prod', 'shared', 'env', 'stack'])}/${dice.pick(['limits', 'hosts', 'rules', 'quota'])}-${dice.roll(900) + 100}.toml`,
    said: ['The settings of {s} live in {v}.', 'Move what {s} reads at start to {v}.'],
    replied: [
      '{s} loads its configuration file {v} now, all settings.',
      'Created the config file {v} and pointed {s} at it, settings included.',
    ],
    asked: ['Which file holds the settings of {s}?', 'In which config file do I change {s}?'],
  },
  {
    name: 'command',
    value: (dice) =>
      `make ${dice.pick(['replay', 'backfill', 'reseed', 'rotate', 'drain'])}-${dice.pick(['all', 'eu', 'us', 'dry', 'night'])} N=${dice.roll(900) + 100}`,
    said: ['To repair {s} by hand run `{v}`.', 'When {s} gets stuck, `{v}` is what helped last time.'],
    replied: [
      'Ran the command `{v}`; {s} was stuck and is repaired.',
      'I wrote the repair command `{v}` into the runbook of {s}, for when it is stuck.',
    ],
    asked: ['What do I run when {s} is stuck again?', 'Which command repairs {s}?'],
  },
  {
    name: 'error',
    value: (dice) => `E${dice.pick(['CONN', 'AUTH', 'SCHEMA', 'QUOTA', 'LOCK'])}_${dice.roll(9_000) + 1_000}`,
    said: ['{s} fails with {v} again, please find the cause.', 'CI shows {v} in the {s} job since this morning.'],
    replied: [
      'The error {v} came from a stale token in {s}; it failed at each login.',
      'The cause of error {v} in {s} was a clock that ran ahead, so checks failed.',
    ],
    asked: ['Which error did {s} fail with?', 'What was the cause of the error in {s}?'],
  },
  {
    name: 'limit',
    value: (dice) => `${dice.roll(90) * 10 + 110} requests`,
    said: ['{s} may take {v} per minute from one tenant, not more.', 'Throttle {s}: {v} a minute for each customer.'],
    replied: [
      'The limit of {s} stands at {v} a minute for each customer.',
      'Added the limit to {s}: {v} each minute and customer.',
    ],
    asked: ['How many requests a minute may one customer send to {s}?', 'What is the limit of {s} per minute?'],
  },
  {
    name: 'schedule',
    value: (dice) => `${String(dice.roll(24)).padStart(2, '0')}:${String(dice.roll(12) * 5).padStart(2, '0')} UTC`,
    said: ['The nightly job of {s} starts at {v}.', 'Run the cleanup of {s} at {v}, that is when traffic is lowest.'],
    replied: ['The nightly cleanup job of {s} runs at {v} now.', 'The nightly {s} cleanup job is scheduled for {v}.'],
    asked: ['When does the nightly cleanup of {s} run?', 'At what time is the cleanup job of {s} scheduled?'],
  },
  {
    name: 'package',
    value: (dice) =>
      `${dice.pick(['fast', 'tiny', 'strict', 'open'])}-${dice.pick(['csv', 'xml', 'pdf', 'queue', 'image'])}@${dice.roll(9) + 1}.${dice.roll(20)}.${dice.roll(30)}`,
    said: ['Pin {v} in {s}, the newer release leaks memory.', '{s} stays on {v} until the bug upstream is fixed.'],
    replied: [
      'Pinned the package: {s} has version {v} now, exact.',
      'Pinned version {v} of the package for {s} with a comment on the newer release.',
    ],
    asked: ['Which package did we pin in {s}?', 'What version is pinned in {s}, and why not the newer release?'],
  },
];

/** What is said between the things that matter. */
export const CHATTER: readonly (readonly [string, string])[] = [
  ['Run the tests again please.', 'All green, 312 passed.'],
  ['Commit that.', 'Committed with a short message.'],
  ['Looks good, go on.', 'Going on with the next file.'],
  ['Can you shorten that function?', 'It is half as long now and reads better.'],
  ['Rename the variable, it misleads.', 'Renamed it everywhere.'],
  ['Rebase on main first.', 'Rebased without conflicts.'],
];

/** Nothing of this was ever spoken of. */
export const ELSEWHERE: readonly string[] = [
  'What is the wifi password of the office in Lisbon?',
  'How many vacation days are left this year?',
  'Which colour does the brand book prescribe for buttons?',
  'What did the auditors say about the travel expenses?',
  'Which conference talk was accepted for spring?',
  'How do I book the meeting room on the third floor?',
  'What is the phone number of the landlord?',
  'Which lawyer reviews our privacy statement?',
  'How large was the last funding round?',
  'What does the coffee machine cost to repair?',
  'When is the summer party?',
  'Which insurance covers the laptops?',
  'What is the share price today?',
  'Who won the table tennis tournament?',
  'How tall is the antenna on the roof?',
  'Which museum did the team visit?',
  'What is the allergy list for the canteen?',
  'How many parking spots do we rent?',
  'Which bank holds the escrow account?',
  'What is the dress code for the gala?',
];
