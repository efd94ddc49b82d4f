import path from 'node:path';
import type { Command } from 'commander';
import type { ProjectView } from '../../../memory/face.ts';
import type { Context } from '../../context.ts';
import { engineOf } from '../../engine.ts';
import { ago, count, oneLine, printable } from '../../format.ts';
import type { Paint } from '../../term.ts';

export function registerMemoryAbout(memory: Command, context: Context): void {
  memory
    .command('about')
    .description('what is known of a project: its last brief, the weightiest memories, tags and facts')
    .option('--project <dir>', 'of this one', '.')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExample:\n  comet-cc memory about --project ~/code/shop')
    .action(async (flags: { project: string; json?: boolean }) => {
      const projectDir = path.resolve(flags.project);
      const view = await engineOf(context.paths).call('memory/about', { projectDir });
      if (flags.json) return context.term.json(view);
      if (view.counts.turns + view.counts.nodes === 0)
        return context.term.say(`nothing is known of ${oneLine(view.project)} yet`);
      for (const line of aboutLines(view, context.term.paint, Date.now())) context.term.out(line);
    });
}

export function aboutLines(view: ProjectView, paint: Paint, nowMs: number): string[] {
  const { sessions, turns, nodes, facts } = view.counts;
  const lines = [
    paint('bold', oneLine(view.project)),
    `${count(sessions)} sessions, ${count(turns)} turns, ${count(nodes)} nodes, ${count(facts)} facts`,
  ];
  if (view.tags.length > 0)
    lines.push(`tags: ${view.tags.map(({ tag, nodes: n }) => `${oneLine(tag)} ${n}`).join(', ')}`);
  if (view.brief !== null && view.brief.text !== '') {
    const { session_id, updated_at, text } = view.brief;
    lines.push('', paint('dim', `Brief of session ${oneLine(session_id)}, ${ago(Date.parse(updated_at), nowMs)}`));
    lines.push(...printable(text).trimEnd().split('\n'));
  }
  if (view.nodes.length > 0) {
    lines.push('', paint('dim', `Memories, the weightiest first (${view.nodes.length} of ${nodes})`));
    lines.push(
      ...view.nodes.map(({ importance, text }) => `${importance.padEnd(4)} ${oneLine(text).replace(/^- /, '')}`),
    );
  }
  if (view.facts.length > 0) {
    lines.push('', paint('dim', `Facts, the newest first (${view.facts.length} of ${facts})`));
    lines.push(...view.facts.map(factLine));
  }
  return lines;
}

function factLine({ concept, value, polarity, origin }: ProjectView['facts'][number]): string {
  // A "not" before it would turn a value around that says its own.
  return `- ${oneLine(concept)}: ${oneLine(value)} (${polarity === 'negative' ? 'negative, ' : ''}${origin})`;
}
