/** What an invented day of work is about: a subject, its parts, and what is said of them besides facts. */
export interface Theme {
  readonly name: string;
  readonly things: readonly string[];
  readonly files: readonly string[];
  readonly orders: readonly string[];
  readonly reports: readonly string[];
}

export const THEMES: readonly Theme[] = [
  {
    name: 'invoices',
    things: ['invoice renderer', 'tax column', 'credit note', 'invoice archive'],
    files: ['src/billing/render.ts', 'src/billing/tax.ts', 'billing/templates/credit.html'],
    orders: ['Have a look at how invoices are rendered.', 'Let the invoice carry the tax number of the customer.'],
    reports: ['Invoices are rendered from a template now, and the tax number stands below the address.'],
  },
  {
    name: 'search',
    things: ['search index', 'suggestion list', 'stemming filter', 'result page'],
    files: ['src/search/index.ts', 'src/search/suggest.ts', 'ops/search/mapping.json'],
    orders: [
      'The search finds nothing for plural words, please look into it.',
      'Show suggestions while somebody types.',
    ],
    reports: ['Plural words are stemmed before they are looked up, and suggestions appear while typing.'],
  },
  {
    name: 'login',
    things: ['login page', 'session store', 'password reset', 'single sign-on bridge'],
    files: ['src/auth/login.ts', 'src/auth/sessions.ts', 'auth/policies/reset.yaml'],
    orders: [
      'People are logged out too early, can you find out why?',
      'Add a link to reset a password to the login page.',
    ],
    reports: ['Sessions were dropped whenever a second tab was opened; they are shared between tabs now.'],
  },
  {
    name: 'images',
    things: ['thumbnail worker', 'image cache', 'upload form', 'watermark step'],
    files: ['src/images/thumbs.ts', 'src/images/cache.ts', 'workers/watermark.py'],
    orders: ['Thumbnails look blurry on large screens.', 'Uploading a picture twice must not store it twice.'],
    reports: ['Thumbnails are made in two sizes now, and pictures are stored under their own hash.'],
  },
  {
    name: 'mail',
    things: ['mail queue', 'newsletter job', 'bounce handler', 'unsubscribe page'],
    files: ['src/mail/queue.ts', 'src/mail/bounces.ts', 'mail/templates/news.mjml'],
    orders: ['Some newsletters never arrive, where do they get stuck?', 'Let readers unsubscribe with one click.'],
    reports: ['Bounced addresses blocked the whole queue; they are set aside and reported now.'],
  },
  {
    name: 'warehouse',
    things: ['stock counter', 'picking list', 'label printer', 'returns desk'],
    files: ['src/stock/count.ts', 'src/stock/picking.ts', 'printers/zebra/labels.zpl'],
    orders: ['The stock counter is wrong after a return.', 'Sort the picking list by shelf.'],
    reports: ['Returned goods are counted once they are checked, and the list follows the shelves.'],
  },
  {
    name: 'reports',
    things: ['weekly report', 'chart service', 'spreadsheet export', 'report scheduler'],
    files: ['src/reports/weekly.ts', 'src/reports/charts.ts', 'reports/sql/revenue.sql'],
    orders: ['The weekly report takes ages to open.', 'Draw the revenue as a chart.'],
    reports: ['The report reads a prepared summary instead of every order, and it opens at once.'],
  },
  {
    name: 'deployment',
    things: ['release pipeline', 'canary cluster', 'container image', 'rollback job'],
    files: ['ops/deploy/pipeline.yaml', 'ops/deploy/canary.sh', 'Dockerfile.release'],
    orders: ['Releases fail halfway through, please check the pipeline.', 'Make the container image smaller.'],
    reports: ['The pipeline waited for a step that nobody runs any more; it is gone, and the image is half as large.'],
  },
];

/** Said in any session about anything; nothing in it is worth keeping. */
export const SMALL_TALK = {
  user: ['Thanks, that helps.', 'Good.', 'Please go on.', 'Sounds fine to me.', 'Let us see.', 'One step at a time.'],
  assistant: [
    'Let me have a look at the code first.',
    'I will start by reading the relevant parts of the project.',
    'Now I will make the change and then check that everything still works as before.',
    'This touches several places, so I am going through them one after the other to be on the safe side.',
    'I went through the surrounding code and found nothing else that depends on it.',
    'Everything looks consistent again, and the rest of the code did not need any changes.',
    'If you would like, I can also tidy up the surrounding code afterwards.',
    'Let me know whether you would like me to go on with the next part.',
    'The change is small and follows the style of the code around it.',
  ],
} as const;

export const PEOPLE = [
  'Ilse',
  'Tobias',
  'Marta',
  'Ruben',
  'Aylin',
  'Goran',
  'Noor',
  'Henrik',
  'Paula',
  'Sven',
] as const;
