import { describe, expect, it } from 'vitest';
import { DEFAULT_ONTOLOGY } from '../../../../memory/facts/default-ontology.ts';
import { extractFacts, type FactTurn } from '../../../../memory/facts/extract-facts.ts';
import { extractByRules } from '../../../../memory/facts/rule-extractor.ts';

function factsIn(turn: Partial<FactTurn>): string[] {
  const whole = { user: '', assistant: '', ...turn };
  const candidates = extractByRules(whole);
  const { facts } = extractFacts({ ontology: DEFAULT_ONTOLOGY, turn: whole, candidates });
  expect(facts.length, 'every candidate is valid').toBe(candidates.length);
  return facts.map(({ concept, value, polarity }) => `${polarity === 'negated' ? 'not ' : ''}${concept}: ${value}`);
}

it.each([
  ['I prefer small commits.', 'Person.Preference: small commits'],
  ['OK, and please always run the linter first.', 'Person.Preference: always run the linter first'],
  ['Never push to main', 'Person.Preference: Never push to main'],
  ['From now on use British spelling, it is what our readers know.', 'Person.Preference: use British spelling'],
  ['I always use fish because my scripts are written for it.', 'Person.Preference: fish'],
  ["By the way, I'm color-blind.", 'Person.Constraint: color-blind'],
  ['I rely on a screen reader.', 'Person.Constraint: a screen reader'],
  [
    "I'm not allowed to install software on this laptop.",
    'Person.Constraint: not allowed to install software on this laptop',
  ],
  ['Please answer in French from now on.', 'Person.Language: French'],
  ['I speak Polish.', 'Person.Language: Polish'],
  ['Stop answering in French.', 'not Person.Language: French'],
  ['We decided to use Postgres for the event store.', 'Project.Decision: Postgres for the event store'],
  ["We've agreed on a weekly release.", 'Project.Decision: a weekly release'],
  ["Let's use Postgres.", 'Project.Decision: Postgres'],
  ["Let's go with cursor pagination.", 'Project.Decision: cursor pagination'],
  ['We decided against Redis.', 'Project.Decision: against Redis'],
  ['We use pnpm.', 'Project.Decision: pnpm'],
  ['Our convention is that tests live beside their source.', 'Project.Convention: tests live beside their source'],
  ['All migrations must be reversible.', 'Project.Convention: All migrations must be reversible'],
  ['We never commit generated files.', 'Project.Convention: never commit generated files'],
  ['The staging host is stage-2.example.com.', 'Project.Environment: staging host is stage-2.example.com'],
  ['The API listens on port 8080.', 'Project.Environment: API listens on port 8080'],
  ["We're on Node 22.", 'Project.Environment: Node 22'],
  ['Run the tests with `make test-fast`.', 'Project.Command: make test-fast'],
  ['Use `pnpm run db:reset` to reset the database.', 'Project.Command: pnpm run db:reset'],
  ['The deploy command is `./deploy.sh staging`.', 'Project.Command: ./deploy.sh staging'],
  ['Ines owns the importer.', 'Project.Owner: Ines owns the importer'],
  ['The platform team is responsible for CI.', 'Project.Owner: The platform team is responsible for CI'],
  ['The goal is to halve the start-up time.', 'Work.Goal: halve the start-up time'],
  ["I'm blocked by the missing staging credentials.", 'Work.Blocker: the missing staging credentials'],
  ["We're no longer blocked by the missing staging credentials.", 'not Work.Blocker: the missing staging credentials'],
  ['Next step: write the migration.', 'Work.NextStep: write the migration'],
  ['The deadline for the importer is 14 March.', 'Work.Deadline: 14 March'],
  ['The demo must be ready by Friday noon.', 'Work.Deadline: demo must be ready by Friday noon'],
  ["Let's focus on src/importer/parse.ts.", 'Session.Focus: src/importer/parse.ts'],
  ['For now I just need the log as plain text.', 'Need.Immediate: the log as plain text'],
])('%s', (user, fact) => {
  expect(factsIn({ user })).toEqual([fact]);
});

it('ends what is no longer so, and takes the new value of a switch', () => {
  expect(factsIn({ user: 'We no longer use Jenkins.' })).toEqual([
    'not Person.Preference: Jenkins',
    'not Project.Decision: Jenkins',
  ]);
  expect(factsIn({ user: "We've switched from npm to pnpm." })).toEqual([
    'Project.Decision: pnpm',
    'not Person.Preference: npm',
    'not Project.Decision: npm',
  ]);
});

describe('takes no fact from', () => {
  it.each([
    'Should we use Redis here?',
    'do we use pnpm or npm',
    'We could use Redis.',
    'If we use Redis, the cache survives a restart.',
    'Maybe we should decide on Redis.',
    'I think we use npm.',
    'Tom said we use npm.',
    'The README says "we use npm".',
    'We use npm. But I want to get rid of it.',
    'We decided to use Redis. Actually, scratch that.',
    'Never mind.',
    'It always fails on CI.',
    'Always fails on CI.',
    'Always here to help.',
    'We always look forward to a release.',
    'From now on it is your problem.',
    "I can't find the file.",
    'I want a better name for this.',
    'The version is wrong.',
    'The path is fine.',
    'It owns the lock.',
    'This runs on every request.',
    'Answer in one sentence.',
    'The deadline is tight.',
    "I'm not blocked.",
    '> We use npm.',
    '    We use npm.',
    '| We use npm. |',
    '```\nWe use npm.\n```',
    `We use ${'x'.repeat(200)}.`,
  ])('%s', (user) => {
    expect(factsIn({ user })).toEqual([]);
  });

  it('what the assistant states, but for its next step', () => {
    const assistant = 'We use npm. I prefer tabs. Next step: write the migration.';
    expect(factsIn({ assistant })).toEqual(['Work.NextStep: write the migration']);
  });
});

it('reads sentences across lines, and each list item for itself', () => {
  const user =
    'Some notes:\n\nWe decided to use Postgres\nfor the event store.\n\n- We use pnpm\n- Ines owns the importer';
  expect(factsIn({ user })).toEqual([
    'Project.Decision: Postgres for the event store',
    'Project.Decision: pnpm',
    'Project.Owner: Ines owns the importer',
  ]);
});
