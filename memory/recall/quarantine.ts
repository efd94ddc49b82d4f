import { memoize } from '../../common/map.ts';
import { isCleanOrigin } from '../../common/turn.ts';
import type { MemoryNode } from '../model/node.ts';

/** Patterns of instructions to the reader and of impersonation; necessarily incomplete. */
const SIGNS: readonly RegExp[] = [
  /\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:previous|prior|above|earlier|preceding|your)\b[^.!?\n]{0,30}\b(?:instructions?|rules?|prompts?|messages?|guidelines)\b/i,
  // The first in German and Russian, in Romance languages, and in Chinese, Japanese and Korean.
  /(?:ignorieren? |vergiss |игнорируй|забудь)[^.!?\n]{0,40}(?:vorherig|bisherig|obig|früher|предыдущ|прежн)|(?:ignor[aeo]|oublie|olvid|dimentic|esque[çc])[^.!?\n]{0,40}(?:instru|istru|r[eè]g[lor])[^.!?\n]{0,30}(?:pr[eé]c[eé]d|anterior|previ)|(?:忽略|无视|無視|忘记)[^.!?\n。]{0,30}(?:之前|以前|以上|先前)|(?:これまで|以前|上記)[^.!?\n。]{0,20}(?:無視|忘れ)|(?:이전|앞의)[^.!?\n]{0,20}(?:무시|잊)/i,
  /\b(?:remember|store|save)\b[^.!?\n]{0,30}\b(?:for|in) (?:all|every|any) (?:future|later|coming)\b/i,
  /\bfrom now on,? (?:you|claude|the (?:assistant|agent|model))\b/i,
  /\byou (?:must|shall|have to) (?:always|never|now)\b/i,
  /\b(?:do not|don't|never) (?:tell|inform|warn|mention (?:this|it) to) the user\b/i,
  /\bsystem (?:notice|message|override|prompt)\s*[:=]/i,
  /<[\s/]*(?:system|system-reminder|instructions?|assistant|human|user|invoke|function_calls|tool_use|comet-cc-memory)\b/i,
  /\[\/?INST\]|<\|[a-z_]{2,20}\|>/i,
  /(?:^|\n)[^\S\n]*(?:human|user|assistant|system)[^\S\n]*:[^\n]*\n\s*(?:human|user|assistant|system)\s*:/i,
  /\brecall[_ ]mode\b\W{1,4}(?:passive|both)\b|\borigin\b\W{1,4}user\b/i,
];

/** Whether recall leaves a node out: of untrusted origin, with instructions in it, and not released by the user. */
export function isQuarantined(node: MemoryNode): boolean {
  return !isCleanOrigin(node.origin) && node.released !== true && givesOrders(node);
}

const givesOrders = memoize(({ summary, trigger, detailed_summary, facts }: MemoryNode): boolean =>
  [summary, trigger, detailed_summary ?? '', ...facts.map(({ value }) => value)].some(hasInstructions),
);

export function hasInstructions(text: string): boolean {
  const plain = text.normalize('NFKC').replace(/\p{Cf}/gu, '');
  return SIGNS.some((sign) => sign.test(plain));
}
