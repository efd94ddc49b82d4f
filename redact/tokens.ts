import type { Span } from './span.ts';

interface Rule {
  readonly type: string;
  /**
   * Global. The secret is the whole match, or the last group, which then ends the match. Nothing is required after an
   * unbounded run, so that each rule stays linear on hostile text. No letter or digit may follow a match: after the mark
   * it would start a word, and a second pass would find more.
   */
  readonly pattern: RegExp;
  readonly accepts?: (secret: string) => boolean;
}

// No letter or digit before it, except the end of an escape: \n, \u000a, %3D.
const EDGE = String.raw`(?<![A-Za-z0-9](?<!\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}))`;
const edged = (source: string, flags = 'g'): RegExp => new RegExp(EDGE + source, flags);

const RULES: readonly Rule[] = [
  { type: 'anthropic-key', pattern: /sk-ant-[\w-]{10,}/g },
  { type: 'openai-key', pattern: edged(String.raw`sk-(?:(?:proj|svcacct|admin|None)-[\w-]{16,}|[A-Za-z0-9]{20,})`) },
  { type: 'github-token', pattern: edged('gh[pousr]_[A-Za-z0-9]{30,}') },
  { type: 'github-token', pattern: /github_pat_\w{22,}/g },
  { type: 'gitlab-token', pattern: edged(String.raw`gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[\w-]{20,}`) },
  { type: 'aws-key-id', pattern: edged('(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}[A-Za-z0-9]*') },
  { type: 'gcp-key', pattern: edged(String.raw`AIza[\w-]{35,}`) },
  { type: 'gcp-key', pattern: /GOCSPX-[\w-]{20,}/g },
  { type: 'gcp-token', pattern: edged(String.raw`ya29\.[\w-]{20,}`) },
  { type: 'stripe-key', pattern: edged('[sr]k_(?:live|test)_[A-Za-z0-9]{16,}') },
  { type: 'stripe-key', pattern: edged('whsec_[A-Za-z0-9+/=]{24,}') },
  { type: 'slack-token', pattern: edged('xox[a-z]-[A-Za-z0-9-]{10,}') },
  { type: 'slack-token', pattern: edged('xapp-[A-Za-z0-9-]{20,}') },
  { type: 'slack-webhook', pattern: /hooks\.slack\.com\/(?:services|workflows|triggers)\/([A-Za-z0-9/_-]{20,})/g },
  { type: 'npm-token', pattern: edged('npm_[A-Za-z0-9]{30,}') },
  { type: 'pypi-token', pattern: edged(String.raw`pypi-AgE[\w-]{40,}`) },
  { type: 'hugging-face-token', pattern: edged('hf_[A-Za-z0-9]{30,}') },
  { type: 'docker-token', pattern: edged(String.raw`dckr_(?:pat|oat)_[\w-]{20,}`) },
  { type: 'digitalocean-token', pattern: edged('do[opr]_v1_[a-f0-9]{60,}[A-Za-z0-9]*') },
  { type: 'age-key', pattern: edged('AGE-SECRET-KEY-1[A-Z0-9]{50,}[A-Za-z0-9]*') },
  { type: 'api-token', pattern: edged(String.raw`(?:gsk_|ntn_|xai-|hv[sb]\.)[\w-]{24,}`) },
  { type: 'bearer', pattern: edged(String.raw`bearer(?:\s{1,4}|%20|\+)([\w.~+/=-]{16,})`, 'gi'), accepts: hasDigit },
  { type: 'basic-auth', pattern: edged(String.raw`basic\s{1,4}([A-Za-z0-9+/=_-]{6,})`, 'gi'), accepts: isBasicPair },
];

/** Secrets recognizable by their format. */
export function findTokens(text: string): Span[] {
  const spans: Span[] = [];
  for (const { type, pattern, accepts } of RULES) {
    // Cheaper than matchAll, which copies the pattern first.
    if (text.search(pattern) < 0) continue;
    for (const match of text.matchAll(pattern)) {
      const secret = match[1] ?? match[0];
      if (accepts !== undefined && !accepts(secret)) continue;
      const end = match.index + match[0].length;
      spans.push({ start: end - secret.length, end, type });
    }
  }
  return spans.concat(spans.filter(({ type }) => type === 'aws-key-id').flatMap((id) => awsSecretsNear(text, id)));
}

// A secret key is recognizable only by its length, so it is searched for only near an access key id.
const AWS_REACH = 300;
const AWS_SECRET = /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/g;

function awsSecretsNear(text: string, id: Span): Span[] {
  const from = Math.max(0, id.start - AWS_REACH);
  const window = text.slice(from, id.end + AWS_REACH);
  return [...window.matchAll(AWS_SECRET)]
    .filter(([secret]) => /[a-z]/.test(secret) && /[A-Z]/.test(secret))
    .map(({ index }) => ({ start: from + index, end: from + index + 40, type: 'aws-secret' }));
}

function hasDigit(text: string): boolean {
  return /\d/.test(text);
}

function isBasicPair(text: string): boolean {
  return /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(Buffer.from(text, 'base64').toString('latin1'));
}
