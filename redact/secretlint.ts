import { setImmediate as nextTick } from 'node:timers/promises';
import { createMutex, runAtOnce } from '../common/async.ts';
import { findUrlPasswords, mergeSpans, type SecretScanner, type Span } from './patterns.ts';

/** Characters per scan; bounds the cost of hostile text for rules that are not linear. */
const WINDOW = 64 * 1024;
/** Longer than any secret except private keys, which our own rules find. */
const OVERLAP = 2 * 1024;

/** Would let a text disable the rules by a directive ("secretlint-disable"). */
const EXCLUDED_RULE = '@secretlint/secretlint-rule-filter-comments';

type SecretRange = { readonly range: readonly [number, number] };
type Source = Readonly<Record<'content' | 'filePath' | 'ext' | 'contentType', string>>;
type Check = { readonly id: string; readonly check: { file?(source: Source): void | Promise<void> } };
type Rule = { readonly meta: { readonly id: string }; create(context: object, options: object): Check['check'] };

/**
 * secretlint's recommended rules, without its core, which keeps a record of each run forever and obeys directives in the
 * text.
 *
 * @param onRuleError  called when a rule fails on a text; the other rules continue
 */
export function createSecretlint(onRuleError: (rule: string, error: unknown) => void): SecretScanner {
  const spans: Span[] = [];
  let from = 0;
  let checks: Promise<readonly Check[]> | null = null;

  /** Loads a megabyte of rules, on first use. */
  async function load(): Promise<readonly Check[]> {
    const { creator } = await import('@secretlint/secretlint-rule-preset-recommend');
    const rules: Rule[] = [];
    creator.create({ registerRule: (rule: unknown) => void rules.push(rule as Rule), sharedOptions: {} } as never, {});
    const allowed = rules.filter(({ meta }) => meta.id !== EXCLUDED_RULE);
    return allowed.map((rule) => {
      const { meta } = rule;
      const name = meta.id.split('secretlint-rule-')[1] ?? '';
      const type = name.replace(/[^a-z-]/g, '') || 'secret';
      const report = ({ range: [start, end] }: SecretRange): void => {
        spans.push({ start: from + start, end: from + end, type });
      };
      const context = { ruleId: meta.id, meta, sharedOptions: {}, createTranslator, report, ignore() {} };
      return { id: meta.id, check: rule.create(context, {}) };
    });
  }

  async function run(source: Source): Promise<void> {
    checks ??= load();
    for (const { id, check } of await checks) {
      try {
        await check.file?.(source);
      } catch (error) {
        onRuleError(id, error);
      }
    }
  }

  async function scan(text: string): Promise<readonly Span[]> {
    spans.length = 0;
    for (from = 0; from < text.length; from += WINDOW - OVERLAP) {
      await run({ content: text.slice(from, from + WINDOW), filePath: '', ext: '', contentType: 'text' });
      if (from + WINDOW >= text.length) break;
      await nextTick();
    }
    return mergeSpans(spans.flatMap((span) => narrowToPassword(text, span)));
  }

  const lock = createMutex();
  return (text) => lock(() => scan(text));
}

/** Rules require a translator for messages, which are not used. */
const createTranslator = () => (messageId: string) => ({ message: '', messageId });

/** In a URL, only the password is a secret, unless it is a variable. */
function narrowToPassword(text: string, span: Span): readonly Span[] {
  const secret = text.slice(span.start, span.end);
  if (!/^[\w+.-]+:\/\//.test(secret)) return [span];
  return runAtOnce(findUrlPasswords(secret)).map(({ start, end }) => ({
    ...span,
    start: span.start + start,
    end: span.start + end,
  }));
}
