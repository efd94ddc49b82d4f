import type { Concept, Ontology, PersistenceClass } from './ontology.ts';

function declare(
  persistence_class: PersistenceClass,
  salience_weight: number,
  bounds: Pick<Concept, 'cardinality' | 'eviction'>,
  label: string,
  ...examples: string[]
): Concept {
  return { label, examples, persistence_class, salience_weight, ...bounds };
}

const one = { cardinality: 1, eviction: 'recency' } as const;
const newest = (cardinality: number) => ({ cardinality, eviction: 'recency' }) as const;
const strongest = (cardinality: number) => ({ cardinality, eviction: 'salience' }) as const;

/** For work on software. */
export const DEFAULT_ONTOLOGY: Ontology = {
  version: '0.2',
  concepts: {
    'Person.Preference': declare(
      'long_term',
      0.8,
      strongest(40),
      'How the user likes work to be done or presented, in any project',
      'small commits with tests',
      'answers without a preamble',
      'two spaces of indentation',
    ),
    'Person.Constraint': declare(
      'permanent',
      1,
      strongest(20),
      'What limits the user and does not pass: an ability, a duty, a machine that cannot be changed',
      'uses a screen reader',
      'may not send code to outside services',
    ),
    'Person.Language': declare(
      'permanent',
      0.9,
      newest(3),
      'A language that the user speaks, or wants answers in',
      'Polish',
      'answers in French',
    ),
    'Project.Decision': declare(
      'long_term',
      0.9,
      strongest(60),
      'What was decided for this project, and holds until it is decided otherwise',
      'Postgres for the event store',
      'no ORM in the billing service',
    ),
    'Project.Convention': declare(
      'long_term',
      0.8,
      strongest(60),
      'A rule that code or process of this project follows',
      'tests live beside their source',
      'branch names begin with the ticket number',
    ),
    'Project.Environment': declare(
      'long_term',
      0.7,
      newest(40),
      'A value of the environment that work depends on: host, port, version, path',
      'staging host is stage-2.example.com',
      'Node 22',
    ),
    'Project.Command': declare(
      'long_term',
      0.7,
      newest(30),
      'A command that builds, tests, runs or deploys this project',
      'make test-fast',
      'pnpm run db:reset',
    ),
    'Project.Owner': declare(
      'long_term',
      0.7,
      newest(20),
      'Who is responsible for a part of this project',
      'Ines owns the importer',
      'the platform team runs CI',
    ),
    'Work.Goal': declare(
      'session',
      0.9,
      newest(3),
      'What the current work is to achieve',
      'move the importer to streams',
      'halve the start-up time',
    ),
    'Work.Blocker': declare(
      'session',
      0.9,
      strongest(5),
      'What holds the current work up',
      'no access to the staging database',
      'a test fails on CI only',
    ),
    'Work.NextStep': declare(
      'session',
      0.7,
      newest(5),
      'What is to be done next',
      'write the migration',
      'ask Ines for a review',
    ),
    'Work.Deadline': declare(
      'long_term',
      0.9,
      newest(5),
      'When something has to be finished',
      'release on 14 March',
      'demo on Friday at noon',
    ),
    'Session.Focus': declare(
      'session',
      0.8,
      one,
      'The file, part or question that this session is about',
      'src/importer/parse.ts',
      'why the cache misses',
    ),
    'Need.Immediate': declare(
      'ephemeral',
      0.8,
      newest(3),
      'What the user needs right now and only now',
      'a quick answer before a meeting',
      'the log as plain text',
    ),
  },
};
