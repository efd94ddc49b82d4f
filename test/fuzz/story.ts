import { createFakeMemory, type FakeMemory } from '../helpers/fake-memory.ts';
import { compare, getGaps } from './compare.ts';
import type { Terminal, Turn } from './fake-client.ts';
import type { Exchange } from './rewriter-rig.ts';

/** A turn with one command, some thought, and enough text that six of them are worth a cut; more with a longer result. */
export function step(number: number, words = 90): Turn {
  return {
    prompt: `Step ${number}: count the settings of module ${number}.`,
    rounds: [
      {
        calls: [
          {
            name: 'Bash',
            input: { command: `grep -c setting module-${number}.ts` },
            result: `${number} `.repeat(words),
          },
        ],
        thinking: [`Module ${number} first.`],
      },
    ],
    thinking: [`That was module ${number}.`],
    answer: `Step ${number} is done: module ${number} holds its settings.`,
  };
}

/** Steps `from` to `to`, each of which has to be taken. */
export async function walk(terminal: Terminal, from: number, to: number, words?: number): Promise<Exchange> {
  let last: Exchange | undefined;
  for (let number = from; number <= to; number += 1) {
    for (const exchange of await terminal.ask(step(number, words))) {
      if (exchange.refusal !== null) throw new Error(`step ${number}: ${exchange.refusal.message}`);
      last = exchange;
    }
  }
  return last as Exchange;
}

/** Recalls for every prompt one line of each trust, and has a brief for everybody. */
export function talkativeMemory(): FakeMemory {
  const memory = createFakeMemory();
  const line = (nodeId: string, text: string, origin: 'user' | 'external') => ({
    line: { nodeId, text: `- [${nodeId}] ${text}`, origin },
    score: 1,
  });
  memory.recall = async ({ prompt }) => [
    line('mem_20261101_000000_c00000', `clean for ${prompt.slice(0, 20)}`, 'user'),
    line('mem_20261101_000000_d00000', `fetched for ${prompt.slice(0, 20)}`, 'external'),
  ];
  return memory;
}

/** Messages left out of a request, 0 where nothing was cut. */
export function left(exchange: Exchange): number {
  return getGaps(compare(exchange)).reduce((total, [from, to]) => total + to - from, 0);
}

export const getText = (exchange: Exchange): string => exchange.sent.toString();

/** What a request says of ours: whole texts, each once. */
export function oursIn(exchange: Exchange): readonly string[] {
  const found = getText(exchange).match(
    /<comet-cc-memory.*?<\/comet-cc-memory|comet-cc recalls.*?"|comet-cc, a memory proxy.*?"/g,
  );
  return [...new Set(found ?? [])];
}

/** Nothing that a session was rewritten by is known any more, as after its plans were deleted. */
export const isThinkingFree = (exchange: Exchange): boolean => !exchange.sent.includes('"signature"');
