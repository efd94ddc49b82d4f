import { findPrices, type ModelPrices } from './prices.ts';

/** What a model family accepts and costs. */
export interface ModelTraits extends ModelPrices {
  readonly family: string;
  /** Accepts `role: "system"` inside `messages`. */
  readonly systemMessages: boolean;
  /** Binds thinking signatures to system, tools and every earlier message. */
  readonly bindsThinking: boolean;
  readonly thinking: 'adaptive' | 'manual' | 'both' | 'none';
  /** Keeps the thinking of earlier turns in context; other models keep only the running turn's. */
  readonly keepsThinking: boolean;
  /** Continues a trailing assistant message instead of refusing it. */
  readonly prefill: boolean;
}

type Row = readonly [family: string, match: RegExp, flags: string, thinking: ModelTraits['thinking']];

/**
 * Flags: `s` system messages, `b` binds thinking, `k` keeps thinking, `p` prefill.
 *
 * Sources, all read up to Oct 2026: binding, the preserved-thinking/prefix-checks page of platform.claude.com; system
 * messages, its mid-conversation-system-messages page, and anthropics/claude-code#61242 (refused on Opus 4.7, May
 * 2026); thinking modes, its thinking page.
 */
const ROWS: readonly Row[] = [
  // 5.2 as 5.1: the prefix-checks page lists it, Oct 2026.
  ['fable-5.1', /\b(?:fable|mythos)-5[-.][1-9]\b/, 'sbk', 'adaptive'],
  ['fable-5', /\b(?:fable|mythos)-5\b/, 'sk', 'adaptive'],
  ['opus-5.5', /\bopus-5[-.]5\b/, 'sbk', 'adaptive'],
  ['opus-5', /\bopus-5\b/, 'sk', 'adaptive'],
  ['sonnet-5.5', /\bsonnet-5[-.]5\b/, 'sbk', 'adaptive'],
  // The docs leave it out of the system-message list, Claude Code 2.1.197 sends them (Nov 2026).
  ['sonnet-5', /\bsonnet-5\b/, 'sk', 'adaptive'],
  ['haiku-5.5', /\bhaiku-5[-.]5\b/, 'sbk', 'adaptive'],
  ['opus-4.8', /\bopus-4[-.]8\b/, 'sk', 'adaptive'],
  // Manual thinking refused from 4.7 on.
  ['opus-4.7', /\bopus-4[-.]7\b/, 'k', 'adaptive'],
  // Both thinking modes, no prefill from 4.6 on: platform errors page, Aug 2026.
  ['opus-4.6', /\bopus-4[-.]6\b/, 'k', 'both'],
  ['sonnet-4.6', /\bsonnet-4[-.]6\b/, 'k', 'both'],
  // Keeps thinking from Opus 4.5 on: thinking page, Aug 2026.
  ['opus-4.5', /\bopus-4[-.]5\b/, 'kp', 'manual'],
  ['sonnet-4.5', /\bsonnet-4[-.]5\b/, 'p', 'manual'],
  ['haiku-4.5', /\bhaiku-4[-.]5\b/, 'p', 'manual'],
  ['opus-4', /\bopus-4\b/, 'p', 'manual'],
  ['sonnet-4', /\bsonnet-4\b/, 'p', 'manual'],
  // Claude 3.7: manual thinking; the other 3.x: none.
  ['claude-3.7', /\b3[-.]7\b/, 'p', 'manual'],
  ['claude-3-haiku', /\b3(?:[-.]5)?-haiku\b/, 'p', 'none'],
  ['claude-3', /\bclaude-3\b/, 'p', 'none'],
];

/** For unknown models, the most restrictive assumptions for a rewrite. */
const UNKNOWN = build(['unknown', /$^/, 'sbk', 'both']);

const BUILT = ROWS.map((row) => ({ match: row[1], traits: build(row) }));

/** The traits of a model id as requests carry it (`claude-opus-4-8`, dated, with `[1m]` or a vendor prefix). */
export function findModelTraits(model: string): ModelTraits {
  const name = model.toLowerCase();
  return BUILT.find((entry) => entry.match.test(name))?.traits ?? UNKNOWN;
}

function build([family, , flags, thinking]: Row): ModelTraits {
  return {
    family,
    systemMessages: flags.includes('s'),
    bindsThinking: flags.includes('b'),
    thinking,
    keepsThinking: flags.includes('k'),
    prefill: flags.includes('p'),
    ...findPrices(family),
  };
}
