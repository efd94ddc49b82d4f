import { type Command, Option } from 'commander';
import { addCommand, type Context } from '../context.ts';

const CALLS = '5';

export function registerBench(program: Command, context: Context): void {
  const description = 'measure recall on your own conversations, beside a plain keyword search (BM25)';
  const notes =
    'Makes questions from what is in memory, tells the turns to an empty memory in a temporary folder and asks it.\n' +
    'Nothing is written to your memory, and nothing leaves the machine without --llm claude.';
  const llm = new Option('--llm <who>', 'who makes the questions: rules, or the configured model');
  addCommand(program, 'bench', description, 'comet-cc bench\ncomet-cc bench --project . --limit 50 --json', notes)
    .option('--project <dir>', 'only the project of this directory')
    .option('--since <d>', 'only turns since 30m, 12h, 7d, 2w or a date')
    .option('--limit <n>', 'number of questions', '30')
    .addOption(llm.choices(['local', 'claude']).default('local'))
    .option('--budget <calls>', `with --llm claude: model calls (default ${CALLS})`)
    .jsonAction('document', async (flags) => (await import('./bench-run.ts')).runBench(flags, CALLS, context));
}
