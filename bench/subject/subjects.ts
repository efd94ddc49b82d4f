/** A kind of figure that is settled about a subject: `{s}` is the subject, `{v}` the figure. */
export interface Aspect {
  readonly name: string;
  /** Ranges of two kinds do not meet: a figure is of one kind. */
  readonly least: number;
  readonly span: number;
  readonly said: readonly string[];
  /** Never in the words in which it was said. */
  readonly asked: readonly string[];
}

export const ASPECTS: readonly Aspect[] = [
  {
    name: 'port',
    least: 20_000,
    span: 9_000,
    said: ['The {s} listens on port {v}.', 'We decided that the {s} is reached on port {v}, nowhere else.'],
    asked: ['Which port is the {s} on?', 'On what port do I connect to the {s}?'],
  },
  {
    name: 'batch',
    least: 1_100,
    span: 700,
    said: ['The {s} takes {v} records in one batch.', 'Keep the batch size of the {s} at {v} records.'],
    asked: ['How large is a batch of the {s}?', 'How many records go into one batch of the {s}?'],
  },
  {
    name: 'timeout',
    least: 2_100,
    span: 700,
    said: ['The {s} gives up after a timeout of {v} ms.', 'Set the timeout of the {s} to {v} ms.'],
    asked: ['What is the timeout of the {s}?', 'After which timeout does the {s} stop waiting?'],
  },
  {
    name: 'budget',
    least: 40_000,
    span: 9_000,
    said: ['The budget for the {s} is {v} euros this quarter.', 'Finance approved a budget of {v} euros for the {s}.'],
    asked: ['What is the budget of the {s}?', 'How many euros may the {s} cost, what was budgeted?'],
  },
  {
    name: 'cache',
    least: 3_100,
    span: 700,
    said: ['The {s} has a cache of {v} MB.', 'We agreed on {v} MB of cache for the {s}.'],
    asked: ['How big is the cache of the {s}?', 'How many MB does the {s} cache?'],
  },
];

export const SUBJECTS: readonly string[] = (
  'invoice importer, stock counter, route planner, photo resizer, mail relay, login bridge, price feed, ' +
  'search crawler, report printer, label maker, audit trail, video encoder, map renderer, chat archive, ' +
  'backup runner, refund desk, survey form, ticket queue, sensor gateway, holiday calendar'
).split(', ');

/** Said in answer about anything; no figure in it. */
export const FILLER: readonly string[] = [
  'I went through the code of the {s} and wrote down what depends on it.',
  'The {s} has tests for the common cases, and I added some for empty and for broken input.',
  'Most of the work was in the error handling, which swallowed the reason until now.',
  'I kept the public interface as it is, so that nobody has to change anything today.',
  'The documentation of the {s} says what to do when it does not start.',
  'There is one more place that reads the same settings, and it agrees with this one.',
  'I looked at the logs of the last week and saw nothing unusual there.',
  'The change is small, and it follows the style of the code around it.',
  'If you like I can tidy up the folder of the {s} afterwards.',
  'Everything builds, and the whole suite is green again.',
  'The old behaviour is still there behind a switch until everybody has moved.',
  'I left a note for whoever is on call, in case the {s} behaves strangely at night.',
];

export const PASSING = {
  orders: [
    'Please check that the {s} still starts.',
    'Have a look whether the {s} logs its errors.',
    'Write down how the {s} is configured.',
    'See whether anything else depends on the {s}.',
  ],
  thanks: ['Thanks, go on.', 'Good, that looks right.', 'Fine. What is next?'],
  asides: ['By the way:', 'Before I forget it:', 'One more thing about earlier:'],
} as const;
