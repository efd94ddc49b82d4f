import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { Config } from '../../common/config.ts';
import { silentLog } from '../../common/log.ts';
import { createClaudeCli } from '../../memory/models/claude-code.ts';
import { dataRule, fenced, getJsonSchema, type Prompt } from '../../memory/models/prompts/prompt.ts';
import type { Question } from './conversation.ts';

/** A question with the text that somebody would have to answer it from. */
export interface Judged {
  readonly question: Question;
  readonly text: string;
}

export interface Judge {
  /** Of each, whether its text answers the question rightly. */
  judge(all: readonly Judged[]): Promise<boolean[]>;
  close(): Promise<void>;
}

const PER_CALL = 10;
const Verdicts = z.object({ answered: z.array(z.boolean()).describe('one for each item, in their order') });

const RULES = `You judge whether texts answer questions. Each item has a question, the right answer, and a text.

- true: somebody who reads only the text would give the right answer.
- false: the text lacks it, gives another one, or names several without saying which is meant.`;

export function judgePrompt(all: readonly Judged[], fence: string): Prompt<boolean[]> {
  const items = all.map(({ question, text }, at) =>
    [
      `item ${at + 1}`,
      `question: ${question.text}`,
      `right answer: ${question.answer}`,
      fenced('text', fence, text),
    ].join('\n'),
  );
  return {
    system: `${RULES}\n\n${dataRule(fence)}`,
    user: `${items.join('\n\n')}\n\nJudge the ${all.length} items.`,
    schema: getJsonSchema(Verdicts),
    parse(value) {
      const { answered } = Verdicts.parse(value);
      if (answered.length !== all.length) throw new Error(`${all.length} items, ${answered.length} verdicts`);
      return answered;
    },
  };
}

/** `claude -p` on the user's login, with the model for details. */
export function openJudge(env: NodeJS.ProcessEnv): Judge {
  const { claudeBin, models } = Config.parse({});
  const model = createClaudeCli({
    bin: env['COMET_CC_CLAUDE_BIN'] ?? claudeBin,
    models,
    environment: { env, bundleFile: '', userCa: '', userProxy: {} },
    cwd: path.join(tmpdir(), 'comet-judge'),
    redact: (text) => text,
    now: Date.now,
    log: silentLog,
  });
  const { signal } = new AbortController();
  return {
    async judge(all) {
      const verdicts: boolean[] = [];
      for (let from = 0; from < all.length; from += PER_CALL) {
        const prompt = judgePrompt(all.slice(from, from + PER_CALL), randomBytes(8).toString('hex'));
        verdicts.push(...(await model.ask(prompt, signal)));
      }
      return verdicts;
    },
    close: () => model.close(),
  };
}
