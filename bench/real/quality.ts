/** What can be said of memories without a reader. */
import type { Memory } from '../../memory/index.ts';
import { isRedirect, type MemoryNode } from '../../memory/model/node.ts';
import { fileMarks } from '../../memory/model/turn.ts';
import type { Corpus, RealTurn } from './corpus.ts';
import type { Labels } from './labels.ts';

export interface Quality {
  readonly memories: number;
  readonly by_importance: Readonly<Record<string, number>>;
  /** Memories and facts that something is said to have replaced. */
  readonly superseded: number;
  /** Memories whose text begins as markup of the client, a greeting, a notification, or says that there is nothing. */
  readonly begins_as_noise: Share;
  /** Statements that the user is said to have made whose words no typed prompt of the session has. */
  readonly user_says_unsaid: Share;
  /** Of the others, those that the user only pasted, by a reader's marks. */
  readonly user_says_pasted: Share;
  /** Memories with a statement of either kind. */
  readonly user_misquoted: Share;
  /** File links that no tool was given as a path. */
  readonly links_no_path: Share;
  readonly samples: { readonly unsaid: readonly string[]; readonly links: readonly string[] };
}

interface Share {
  readonly count: number;
  readonly of: number;
}

const NOISE =
  /^(?:<|\[request interrupted|operation stopped by hook|caveat:|this session is being continued|(?:hi|hello|hey|thanks|thank you|you'?re welcome|good (?:morning|evening))\b|nothing that was worth|a turn without text|tool calls: |agent "|base directory for this skill)/i;

export function measureQuality(memory: Memory, corpus: Corpus, labels: Labels): Quality {
  const nodes = memory.library.list({}).filter((node) => !isRedirect(node) && node.kind !== 'document');
  const typed = lettersBySession(corpus, (turn) => turn.typed.join('\n'));
  const own = lettersBySession(corpus, (turn) => {
    const own = labels.of(turn)?.ownWords;
    if (own === undefined) return turn.typed.join('\n');
    const byClient = turn.prompts.filter((text) => !turn.typed.includes(text));
    return [byClient.reduce((left, text) => left.replace(text, ''), own), ...turn.queued].join('\n');
  });
  const said = nodes.flatMap((node) =>
    userStatements(node).map((text) => ({ text, sessionId: node.session_id, node })),
  );
  const unsaid = said.filter(({ text, sessionId }) => !isSaid(text, typed.get(sessionId) ?? ''));
  const pasted = said.filter((each) => !unsaid.includes(each) && !isSaid(each.text, own.get(each.sessionId) ?? ''));
  const misquoted = new Set([...unsaid, ...pasted].map(({ node }) => node));
  const links = nodes.flatMap(({ source_links }) => fileMarks(source_links).map((mark) => mark.path));
  const wrong = links.filter((link) => !corpus.paths.has(link));
  const importances = nodes.map(({ importance }) => importance);
  return {
    memories: nodes.length,
    by_importance: Object.fromEntries(
      ['HIGH', 'MED', 'LOW'].map((name) => [name, importances.filter((each) => each === name).length]),
    ),
    superseded: nodes.reduce((sum, node) => sum + supersededMarks(node), 0),
    begins_as_noise: { count: nodes.filter(({ summary }) => NOISE.test(bare(summary))).length, of: nodes.length },
    user_says_unsaid: { count: unsaid.length, of: said.length },
    user_says_pasted: { count: pasted.length, of: said.length },
    user_misquoted: { count: misquoted.size, of: nodes.length },
    links_no_path: { count: wrong.length, of: links.length },
    samples: { unsaid: unsaid.map(({ text }) => text), links: [...new Set(wrong)] },
  };
}

function supersededMarks({ superseded_by, superseded_as, facts }: MemoryNode): number {
  const own = superseded_by !== null && superseded_as !== 'merged' ? 1 : 0;
  return own + facts.filter((fact) => (fact.superseded_by ?? null) !== null || (fact.valid_to ?? null) !== null).length;
}

const ATTRIBUTED = /^(?:user says|the user(?: said| says)?|user|you (?:said|asked)|asked|quoted):\s*/i;

/** After what names the user, up to the answer or the next section. */
const TOLD = /user says: (.*?)(?= → |; (?:then|decided|open): |$)/gs;
/** What the user only showed stands in quotes. */
const QUOTED = /“[^”]*(?:”|$)/g;
/** Added to a relative date. */
const DATE = / \(\d{4}-\d\d-\d\d\)/g;

function bare(summary: string): string {
  return summary.replace(ATTRIBUTED, '').trim();
}

/**
 * Statements of the user in a summary, and facts of the user's origin. Follows the words in which summaries name the
 * user: where those change, `ATTRIBUTED` has to, or the shares above count nothing.
 */
function userStatements({ summary, facts, decisions = [], origin }: MemoryNode): string[] {
  const told = [...summary.matchAll(TOLD)].map(([, text = '']) => text.replace(QUOTED, '…'));
  const own = facts.filter((fact) => (fact.origin ?? origin) === 'user').map(({ value }) => value);
  const decided = decisions.filter(({ by }) => by === 'user').map(({ text }) => /^“([^”]*)”/.exec(text)?.[1] ?? text);
  return [...told, ...own, ...decided].map((text) => text.replace(DATE, '')).filter((text) => getLetters(text) !== '');
}

function lettersBySession({ turns }: Corpus, getText: (turn: RealTurn) => string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const turn of turns)
    texts.set(turn.sessionId, `${texts.get(turn.sessionId) ?? ''}\n${getLetters(getText(turn))}`);
  return texts;
}

function isSaid(text: string, typed: string): boolean {
  return text.split('…').every((piece) => typed.includes(getLetters(piece)));
}

/** Letters and digits only: marks of redaction aside, quoting changes nothing else. */
export function getLetters(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
}
