import type { MemoryNode } from '../../memory/model/node.ts';
import { makeNode, type NodeFields } from './nodes.ts';

const at = (day: number): string => `2026-03-${String(day).padStart(2, '0')}T10:15:00.000Z`;

/** What a dream has to do with: repetitions, a subject, tags in two spellings, links to nothing, and what it must leave. */
export function dreamNodes(): MemoryNode[] {
  const make = (day: number, session: string, over: NodeFields): MemoryNode =>
    makeNode({
      node_id: `mem_202603${String(day).padStart(2, '0')}_101500_00000a`,
      session_id: session,
      created_at: at(day),
      valid_from: at(day),
      turns: [`end-${day}`],
      topic_tags: [],
      written_by: 'claude',
      ...over,
    });
  const port = 'staging Postgres listens on port 5433 because the legacy CRM holds 5432';
  const invoice = (what: string): string =>
    `invoice renderer: the invoice template ${what}, invoices render tax and totals`;
  return [
    make(1, 's-1', { summary: port, topic_tags: ['database', 'staging'] }),
    make(2, 's-2', { summary: `${port} there`, topic_tags: ['databases'], links: ['mem_20260101_000000_ffffff'] }),
    make(3, 's-2', { summary: port, topic_tags: ['database'], origin: 'external' }),
    make(4, 's-3', { summary: `${port} until 2027`, topic_tags: ['database'], importance: 'HIGH' }),
    make(5, 's-3', { summary: port, written_by: 'user', topic_tags: ['databases'] }),
    make(6, 's-3', { summary: invoice('has a footer'), topic_tags: ['invoices'] }),
    make(7, 's-4', { summary: invoice('has a header'), topic_tags: ['invoice'] }),
    make(8, 's-4', { summary: invoice('has a logo'), topic_tags: ['invoice'] }),
    make(9, 's-4', { summary: 'the office coffee machine is descaled on Mondays', topic_tags: ['office'] }),
    make(10, 's-5', {
      summary: 'superseded stand-in',
      turns: ['end-9'],
      written_by: 'local',
      superseded_by: 'mem_20260309_101500_00000a',
      valid_to: at(10),
    }),
  ];
}
