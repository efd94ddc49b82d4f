/**
 * What a reader says of the turns of the corpus. A label is attached to a turn by its session, its place there and the
 * digest of its prompts; a mark by offset, length and digest in the turn's prompts and answers. No text of the corpus
 * is kept.
 *
 * A turn is worth a memory (`u`), hardly one (`w`: a rename, a formatting, a question whose answer is repeated later), or
 * none (`j`: the client's markup alone, an interrupted prompt that is asked again). A mark is a decision (`d`), a to-do
 * or open question (`t`), or a value (`v`) that later work needs; `p` marks what the user pasted: output, a reviewer's
 * comment, a quotation. A cut is the prompt of a turn that the session is replayed up to.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { BENCH } from '../paths.ts';
import type { RealTurn } from './corpus.ts';

export type Worth = 'u' | 'w' | 'j';
export type MarkKind = 'd' | 't' | 'v';

export interface Mark {
  readonly kind: MarkKind;
  readonly text: string;
}

export interface Label {
  readonly worth: Worth;
  readonly marks: readonly Mark[];
  /** What the user typed in their own words. */
  readonly ownWords: string;
}

export interface Labels {
  /** Null for a turn that no reader has read, or that is another than it was. */
  of(turn: RealTurn): Label | null;
  readonly cuts: readonly { readonly sessionId: string; readonly at: number }[];
}

const Span = z.tuple([z.enum(['d', 't', 'v', 'p']), z.int(), z.int(), z.string()]);
const LabeledTurn = z.tuple([z.string(), z.enum(['u', 'w', 'j'])], Span);
const File = z.object({
  turns: z.record(z.string(), z.array(LabeledTurn)),
  cuts: z.array(z.tuple([z.string(), z.int()])),
});

/** @throws where a mark is no longer where it was */
export function readLabels(): Labels {
  const file = path.join(BENCH, 'real/labels.json');
  const { turns, cuts } = File.parse(JSON.parse(readFileSync(file, 'utf8')));
  return {
    of({ sessionId, at, hash, text, prompts }) {
      const [digest, worth, ...spans] = turns[sessionId]?.[at] ?? [];
      if (digest !== hash || worth === undefined) return null;
      const marks: Mark[] = [];
      let ownWords = prompts.join('\n');
      // Pasted spans are cut out from behind, so that the offsets before them stay.
      for (const [kind, offset, length, sha256] of spans.toSorted((a, b) => b[1] - a[1])) {
        const marked = text.slice(offset, offset + length);
        if (getDigest(marked) !== sha256) throw new Error(`a mark of ${sessionId}, turn ${at}, is not where it was`);
        if (kind === 'p') ownWords = `${ownWords.slice(0, offset)}\n${ownWords.slice(offset + length)}`;
        else marks.unshift({ kind, text: marked });
      }
      return { worth, marks, ownWords };
    },
    cuts: cuts.map(([sessionId, at]) => ({ sessionId, at })),
  };
}

function getDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
