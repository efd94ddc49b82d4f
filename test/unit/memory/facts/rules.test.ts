import { describe, expect, it } from 'vitest';
import { DEFAULT_ONTOLOGY } from '../../../../memory/facts/default-ontology.ts';
import { extractFacts, type FactTurn } from '../../../../memory/facts/extract-facts.ts';
import { extractByRules } from '../../../../memory/facts/rules.ts';

function factsIn(turn: Partial<FactTurn>): string[] {
  const whole = { user: '', assistant: '', ...turn };
  const candidates = extractByRules(whole);
  const { facts } = extractFacts({ ontology: DEFAULT_ONTOLOGY, turn: whole, candidates });
  expect(facts.length, 'every candidate is valid').toBe(candidates.length);
  return facts.map(({ concept, value, polarity }) => `${polarity === 'negated' ? 'not ' : ''}${concept}: ${value}`);
}

it('finds in prompts that came together what each states alone', () => {
  const prompts = [
    'The staging host is stage-2.example.com.',
    'The API listens on port 8080.',
    'Ines owns the importer and the nightly export of all reports.',
    'The deploy command is `./deploy.sh staging`.',
    'The platform team is responsible for CI.',
  ];
  const together = factsIn({ user: prompts.join('\n\n'), prompts });
  expect(together).toEqual(prompts.flatMap((user) => factsIn({ user })));
  expect(together).toHaveLength(5);
});

it.each([
  ['I prefer small commits.', 'Person.Preference: small commits'],
  ['OK, and please always run the linter first.', 'Person.Preference: always run the linter first'],
  ['Never push to main', 'Person.Preference: Never push to main'],
  ['From now on use British spelling, it is what our readers know.', 'Person.Preference: use British spelling'],
  ['I always use fish because my scripts are written for it.', 'Person.Preference: fish'],
  ["By the way, I'm color-blind.", 'Person.Constraint: color-blind'],
  ['I rely on a screen reader.', 'Person.Constraint: a screen reader'],
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
  ['don’t ever skip it: never use `any`', 'Project.Convention: never use `any`'],
  ['never use anything computed at export time', 'Project.Convention: never use anything computed at export time'],
  ['always return early', 'Project.Convention: always return early'],
  ['never run psql on db-2 without a review', 'Project.Convention: never run psql on db-2 without a review'],
  ['we decided yesterday in the team: no upgrades on fridays', 'Project.Decision: no upgrades on fridays'],
  ['we agreed last week on Postgres', 'Project.Decision: Postgres'],
  ['can you make sure to never touch the generated files?', 'Person.Preference: never touch the generated files'],
  ["don't commit unless I ask you to", "Person.Preference: don't commit unless I ask you to"],
  ["please don't push without asking", "Person.Preference: don't push without asking"],
  ['you should always explain trade-offs', 'Person.Preference: always explain trade-offs'],
  ['please stop adding comments to obvious code', 'Person.Preference: stop adding comments to obvious code'],
  ['run the linter before committing', 'Person.Preference: run the linter before committing'],
  ['ab jetzt antworte auf Deutsch', 'Person.Preference: ab jetzt antworte auf Deutsch'],
  ['以后都用中文回答', 'Person.Preference: 以后都用中文回答'],
  ['항상 한국어로 대답해', 'Person.Preference: 항상 한국어로 대답해'],
  ['use pnpm, not npm', 'Project.Decision: use pnpm'],
  ['use bun instead of npm please', 'Project.Decision: use bun'],
  ['ok, let\'s rename "start" to "begin" instead.', 'Project.Decision: rename "start" to "begin"'],
  ['no, we removed the old flags on purpose', 'Project.Decision: removed the old flags on purpose'],
  ["the id changes, that's why we add a trailer", 'Project.Decision: add a trailer'],
  ["we can't use Node 22 because of the host", "Project.Decision: we can't use Node 22"],
  ['this project is written in Go', 'Project.Decision: Go'],
  ['we deploy to Fly via GitHub Actions', 'Project.Decision: deploy to Fly via GitHub Actions'],
  ["we don't use default exports", "Project.Convention: don't use default exports"],
  ['in this repo, use tabs', 'Project.Convention: use tabs'],
  ["don't use any in this repo", "Project.Convention: don't use any in this repo"],
  ['tests should never hit the network', 'Project.Convention: tests should never hit the network'],
  ['I think we should log the user id in every request', 'Project.Convention: log the user id in every request'],
  ['keep in mind that we support Windows too', 'Project.Convention: we support Windows'],
  ["I'm on macOS with zsh", 'Project.Environment: macOS with zsh'],
  ['can you look at the repo ~/code/shop?', 'Project.Environment: repo ~/code/shop'],
  ['can you try mise run test:ci?', 'Project.Command: mise run test:ci'],
  ['does `cargo test --workspace` pass?', 'Project.Command: cargo test --workspace'],
  ["I'd like to add a cache to the loader, can you help me?", 'Work.Goal: add a cache to the loader'],
  ['integration tests are failing now', 'Work.Blocker: integration tests are failing'],
  ['there are merge conflicts against main, can you fix them?', 'Work.Blocker: merge conflicts against main'],
  ['the problem is that the runner has no token', 'Work.Blocker: the runner has no token'],
  ["we're waiting for the review from Ines", 'Work.Blocker: the review from Ines'],
  ["leave it, I'll talk to Ines", 'Work.NextStep: talk to Ines'],
  ['the release is scheduled for 14 March', 'Work.Deadline: release is scheduled for 14 March'],
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
    "Let's use redis — no wait, actually postgres.",
    "Let's use redis. No wait, postgres.",
    'We use redis, hmm no, scratch that',
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
    'can you add a test?',
    'we should add tests',
    "don't add a test for it",
    "let's keep it",
    "let's go with option 2",
    "let's only add one for now",
    "let's assume that the count stays below 20",
    "let's support each other",
    'rename to "steps"',
    "We can't wait to see you.",
    'I want to know how it works.',
    'It fails.',
    'The first line says "fine. We use npm."',
    'add `npm run lint` to the scripts',
    'make run easier to read',
    'can we use `go run`?',
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

  it('what the user shows', () => {
    const log = '$ make\nWe use npm.\nNever push to main\n';
    expect(factsIn({ user: `look at this:\n\n${log}` })).toEqual([]);
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

it('takes every command that an answer names, with the command as evidence where markdown is in between', () => {
  const assistant = '- **`npm run build`**: done\n- **`npm run test:ci`**: passes\n\nAll of `npm run build` is fine.';
  expect(factsIn({ assistant })).toEqual([
    'Project.Command: npm run build',
    'Project.Command: npm run test:ci',
    'Project.Command: npm run build',
  ]);
});
