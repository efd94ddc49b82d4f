import { hits, rows, serviceLog, source, testRun } from '../outputs.ts';
import { bash, edit, grep, read, type StoryTurn } from './turn.ts';

/** Labels are slow to render. */
export const labelTurns: readonly StoryTurn[] = [
  {
    prompt: 'Rendering a shipping label takes almost two seconds. Where does the time go?',
    rounds: [
      { tools: [bash('npx tsx scripts/profile-label.ts', rows(['step', 'calls', 'total_ms', 'self_ms'], 40))] },
      {
        thinking: 'The font step dominates.',
        tools: [read('src/labels/fonts.ts', source(['files'], ['loadFont', 'measureText', 'embedFont', 'fontCache']))],
      },
    ],
    answer: 'Of 1,910 ms, 1,480 go into loadFont: it reads and parses the whole font file for every label.',
  },
  {
    prompt: 'Load the fonts once at start and keep them.',
    rounds: [
      {
        tools: [
          edit(
            'src/labels/fonts.ts',
            'const font = parse(await readFile(file));',
            'const font = await fonts.get(file);',
          ),
        ],
      },
      { tools: [bash('npx tsx scripts/profile-label.ts', rows(['step', 'calls', 'total_ms', 'self_ms'], 30))] },
    ],
    answer: 'A label takes 390 ms now; the fonts are parsed once at start.',
  },
  {
    prompt: 'And the barcodes? Marta from the depot says the scanners reject every tenth label.',
    rounds: [
      {
        tools: [
          read(
            'src/labels/barcode.ts',
            source(['types'], ['encodeParcel', 'checkDigit', 'drawBars', 'quietZone', 'scaleBars']),
          ),
          grep('quietZone', hits('quietZone', 14)),
        ],
      },
      {
        tools: [
          bash('npx vitest run test/labels', testRun(['test/labels/barcode.test.ts', 'test/labels/labels.test.ts'])),
        ],
      },
    ],
    answer:
      'The quiet zone is 6 modules wide, the scanners need 10. It only shows for long parcel numbers, about a tenth of them.',
  },
  {
    prompt: 'Make the quiet zone 12 modules, Marta prefers some reserve.',
    rounds: [
      { tools: [edit('src/labels/barcode.ts', 'const QUIET = 6;', 'const QUIET = 12;')] },
      {
        tools: [
          bash(
            'npx vitest run test/labels',
            testRun(['test/labels/barcode.test.ts', 'test/labels/labels.test.ts', 'test/labels/layout.test.ts']),
          ),
        ],
      },
    ],
    answer: 'The quiet zone is 12 modules; the layout test shows that the label still fits on A6.',
  },
  {
    prompt: 'How many labels did the service render last week?',
    rounds: [
      {
        tools: [
          bash('zgrep label.rendered logs/week-44.log | tail -60', serviceLog(44, ['label.rendered', 'label.cached'])),
        ],
      },
    ],
    answer: 'About 61,000, with a peak of 190 a minute on Monday morning.',
  },
  {
    prompt: 'Write that down as a budget: 400 ms a label at the peak, and an alert above 700.',
    rounds: [
      { tools: [read('ops/alerts.ts', source(['metrics'], ['alertRules', 'routeAlert', 'silence', 'budgetOf']))] },
      {
        tools: [
          edit(
            'ops/alerts.ts',
            'export const budgets = {',
            'export const budgets = {\n  labelRenderMs: { budget: 400, alert: 700 },',
          ),
        ],
      },
    ],
    answer: 'The budget of 400 ms and the alert at 700 ms stand in ops/alerts.ts.',
  },
];
