import { z } from 'zod';
import type { Attempt, FailureKind } from './llm-client.ts';

const count = z.number().nonnegative().catch(0);
const Usage = z
  .looseObject({
    input_tokens: count,
    output_tokens: count,
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
  })
  .catch({ input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 });

const Result = z.looseObject({
  type: z.literal('result'),
  subtype: z.string().catch(''),
  is_error: z.boolean().catch(false),
  result: z.unknown().optional(),
  structured_output: z.unknown().optional(),
  errors: z.unknown().optional(),
  api_error_status: z.unknown().optional(),
  total_cost_usd: count,
  usage: Usage,
});
type Result = z.infer<typeof Result>;

/** Reads what `claude -p --output-format json` printed: one object, or an array that holds the result. */
export function readClaudeOutput(stdout: string, stderr: string): Attempt {
  const result = findResult(stdout);
  if (result === null) {
    const said = `${stderr}\n${stdout}`.trim();
    return { kind: 'failure', failure: failureOf(said), detail: said || 'no output', tokens: 0, costUsd: 0 };
  }
  const used = { tokens: tokensOf(result), costUsd: result.total_cost_usd };
  const value = result.structured_output ?? parsed(result.result);
  if (!result.is_error && value !== undefined && typeof value === 'object' && value !== null) {
    return { kind: 'answer', value, ...used };
  }
  const status = result.api_error_status ?? '';
  const said = [result.result, result.errors, status, stderr].map(textOf).filter(Boolean).join(' · ');
  const detail = said === '' || !result.is_error ? `no structured answer (${result.subtype})` : said;
  return { kind: 'failure', failure: result.is_error ? failureOf(detail) : 'failed', detail, ...used };
}

function failureOf(said: string): FailureKind {
  if (/\/login|not logged in|log in to|invalid api key|oauth token|authentication_error|\b401\b/i.test(said)) {
    return 'not_logged_in';
  }
  if (
    /rate.?limit|usage limit|hit your .*limit|limit reached|too many requests|\b429\b|overloaded|\b529\b/i.test(said)
  ) {
    return 'rate_limited';
  }
  return 'failed';
}

function findResult(stdout: string): Result | null {
  const whole = parsed(stdout.trim());
  const candidates = whole === undefined ? stdout.trim().split('\n').map(parsed) : [whole];
  const results = candidates.flat().flatMap((value) => {
    const result = Result.safeParse(value);
    return result.success ? [result.data] : [];
  });
  return results.at(-1) ?? null;
}

function tokensOf({ usage }: Result): number {
  return usage.input_tokens + usage.output_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return undefined;
  const bare = value.trim().replace(/^```(?:json)?\s*\n([\s\S]*)\n```$/, '$1');
  try {
    return JSON.parse(bare) as unknown;
  } catch {
    // Text that is not JSON is no structured answer; the caller says what it was.
    return undefined;
  }
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
