import type { CapturedTurn } from '../../common/turn.ts';
import { capturedTurn, hex } from '../recall/product.ts';

const TURNS_IN_PAGE = 20;

/**
 * The same history where each session begins by reading a page: what `others` said of other things in the same turns
 * of speech. It is the worst that echo detection can meet, because nothing of the history came from a page.
 */
export function withPages(turns: readonly CapturedTurn[], others: readonly CapturedTurn[]): CapturedTurn[] {
  let session = '';
  let pages = 0;
  return turns.flatMap((turn) => {
    if (turn.sessionId === session) return [turn];
    session = turn.sessionId;
    pages += 1;
    return [pageTurn(turn, getText(others, pages)), turn];
  });
}

function getText(others: readonly CapturedTurn[], page: number): string {
  const at = (page * TURNS_IN_PAGE) % Math.max(1, others.length - TURNS_IN_PAGE);
  const messages = others.slice(at, at + TURNS_IN_PAGE).flatMap((turn) => turn.messages);
  return messages.map(({ content }) => JSON.parse(content) as string).join('\n');
}

function pageTurn({ sessionId, projectDir, atMs }: CapturedTurn, page: string): CapturedTurn {
  const input = { url: 'https://wiki.example/runbook', prompt: 'read' };
  const blocks: readonly (readonly ['user' | 'assistant', unknown])[] = [
    ['user', 'Read the runbook first.'],
    ['assistant', [{ type: 'tool_use', id: 't1', name: 'WebFetch', input }]],
    ['user', [{ type: 'tool_result', tool_use_id: 't1', content: page }]],
    ['assistant', 'I have read it.'],
  ];
  const place = { sessionId, projectDir: projectDir ?? '', atMs: atMs - 1_000 };
  const messages = blocks.map(([role, said]) => {
    const content = JSON.stringify(said);
    return { role, content, sha256: hex(content) };
  });
  return { ...capturedTurn(`${sessionId} page`, [], place), messages };
}
