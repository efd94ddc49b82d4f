import type { Concept, Ontology, PersistenceClass } from './ontology.ts';

function declare(
  persistence_class: PersistenceClass,
  salience_weight: number,
  cardinality: Concept['cardinality'],
  eviction: Concept['eviction'],
) {
  return { persistence_class, salience_weight, cardinality, eviction };
}

/** For work on software. */
export const DEFAULT_ONTOLOGY: Ontology = {
  version: '0.2',
  concepts: {
    'Person.Preference': {
      label: 'How the user likes work to be done or presented, in any project',
      examples: ['small commits with tests', 'answers without a preamble', 'two spaces of indentation'],
      ...declare('long_term', 0.8, 40, 'salience'),
    },
    'Person.Constraint': {
      label: 'What limits the user and does not pass: an ability, a duty, a machine that cannot be changed',
      examples: ['uses a screen reader', 'may not send code to outside services'],
      ...declare('permanent', 1, 20, 'salience'),
    },
    'Person.Language': {
      label: 'A language that the user speaks, or wants answers in',
      examples: ['Polish', 'answers in French'],
      ...declare('permanent', 0.9, 3, 'recency'),
    },
    'Project.Decision': {
      label: 'What was decided for this project, and holds until it is decided otherwise',
      examples: ['Postgres for the event store', 'no ORM in the billing service'],
      ...declare('long_term', 0.9, 60, 'salience'),
    },
    'Project.Convention': {
      label: 'A rule that code or process of this project follows',
      examples: ['tests live beside their source', 'branch names begin with the ticket number'],
      ...declare('long_term', 0.8, 60, 'salience'),
    },
    'Project.Environment': {
      label: 'A value of the environment that work depends on: host, port, version, path',
      examples: ['staging host is stage-2.example.com', 'Node 22'],
      ...declare('long_term', 0.7, 40, 'recency'),
    },
    'Project.Command': {
      label: 'A command that builds, tests, runs or deploys this project',
      examples: ['make test-fast', 'pnpm run db:reset'],
      ...declare('long_term', 0.7, 30, 'recency'),
    },
    'Project.Owner': {
      label: 'Who is responsible for a part of this project',
      examples: ['Ines owns the importer', 'the platform team runs CI'],
      ...declare('long_term', 0.7, 20, 'recency'),
    },
    'Work.Goal': {
      label: 'What the current work is to achieve',
      examples: ['move the importer to streams', 'halve the start-up time'],
      ...declare('session', 0.9, 3, 'recency'),
    },
    'Work.Blocker': {
      label: 'What holds the current work up',
      examples: ['no access to the staging database', 'a test fails on CI only'],
      ...declare('session', 0.9, 5, 'salience'),
    },
    'Work.NextStep': {
      label: 'What is to be done next',
      examples: ['write the migration', 'ask Ines for a review'],
      ...declare('session', 0.7, 5, 'recency'),
    },
    'Work.Deadline': {
      label: 'When something has to be finished',
      examples: ['release on 14 March', 'demo on Friday at noon'],
      ...declare('long_term', 0.9, 5, 'recency'),
    },
    'Session.Focus': {
      label: 'The file, part or question that this session is about',
      examples: ['src/importer/parse.ts', 'why the cache misses'],
      ...declare('session', 0.8, 1, 'recency'),
    },
    'Need.Immediate': {
      label: 'What the user needs right now and only now',
      examples: ['a quick answer before a meeting', 'the log as plain text'],
      ...declare('ephemeral', 0.8, 3, 'recency'),
    },
  },
};
