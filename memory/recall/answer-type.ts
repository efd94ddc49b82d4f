const NUMBER = /\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|twice|once|none)\b/i;
const TIME =
  /\d{1,2}:\d{2}|\b(?:19|20)\d{2}\b|\d\s?(?:ms|s|sec\w*|min\w*|hours?|days?|weeks?|months?|years?|am|pm|utc)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:today|tomorrow|yesterday|night\w*|morning|until|after|before)\b/i;
const CAUSE = /\b(?:because|cause[ds]?|due to|since|reason|so that|turned out|therefore|otherwise|belongs? to)\b|:\s/i;
const PLACE = /[\w-]+[./][\w-]+|`[^`]+`/;
const NAME =
  /(?<=[\p{Ll},;:] )\p{Lu}\p{Ll}+|^\p{Lu}\p{Ll}+(?= (?:from|of|at|told|said|says|called|wants|prefers|allows|asked)\b)/u;

/** What an answer to a question of this kind holds, whatever it is about. */
const KINDS: readonly (readonly [question: RegExp, answer: RegExp])[] = [
  [/\b(?:when|since when|what time|which (?:day|date)|how long ago|at what time)\b/i, TIME],
  [
    /\bhow (?:many|much|wide|long|large|big|high|often|fast|old|far|deep|small|low)\b|\bwhat (?:size|share|port)\b/i,
    NUMBER,
  ],
  [/\bwhy\b|\b(?:reason|cause)\b/i, CAUSE],
  [/\bwho(?:se|m)?\b/i, NAME],
  [/\bwhere\b|\bwhich (?:file|folder|path|module|branch)\b/i, PLACE],
];

/** How a line that may answer the question looks; null where the question does not say. */
export function answerKind(query: string): RegExp | null {
  return KINDS.find(([question]) => question.test(query))?.[1] ?? null;
}
