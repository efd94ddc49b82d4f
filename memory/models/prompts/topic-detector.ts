import { z } from 'zod';
import type { TurnPart } from '../../model/turn.ts';
import type { TopicShiftInput, TopicShiftReading } from '../model.ts';
import { dataRule, fenced, getJsonSchema, type Prompt } from './prompt.ts';
import { elide, labelTurns, renderTranscript } from './transcript.ts';

/** The gist of each turn suffices here; the summarizer sees more. */
const SAID_CHARS = 1_200;
const TOOL_CHARS = 160;

const Reading = z.object({
  logic_flow: z.enum(['MAINTAIN', 'BROKEN']),
  load_level: z.int().min(1).max(5),
  redundancy_detected: z.boolean(),
});

/** As models are shown it. */
const Wire = Reading.extend({ load_level: z.number().describe('whole, 1 to 5') });

const RULES = `You watch a conversation between a developer and a coding agent and judge its newest turn against the turns before it.

logic_flow
  MAINTAIN: the newest turn continues, refines, tests or repairs what was going on, or asks about it.
  BROKEN: it opens a different task or subject, so that the earlier turns could be filed away as finished.
load_level: how much worth keeping has piled up in all turns together
  1 small talk or acknowledgement, 2 one simple matter, 3 several facts or edits,
  4 many decisions, values or files, 5 so much that it should be written down now.
redundancy_detected: true only when the newest turn repeats what an earlier one already settled and adds nothing; it is
  then filed with that turn.`;

export function topicDetectorPrompt(input: TopicShiftInput, fence: string): Prompt<TopicShiftReading> {
  const turns = [...input.buffer, input.turn].map((turn) => {
    const getLimit = (part: TurnPart): number => (part.kind === 'assistant' ? SAID_CHARS : TOOL_CHARS);
    const parts = turn.parts.map((part) => ({ ...part, text: elide(part.text, getLimit(part)) }));
    return { ...turn, user: elide(turn.user, SAID_CHARS), parts };
  });
  const { of } = labelTurns(turns);
  const transcript = renderTranscript(turns, { labels: of, maxChars: 40_000 });
  return {
    system: `${RULES}\n\n${dataRule(fence)}`,
    user: `${fenced('conversation', fence, transcript)}\n\nJudge turn ${of.get(input.turn.turnId) ?? 't1'}.`,
    schema: getJsonSchema(Wire),
    parse: (value) => Reading.parse(value),
  };
}
