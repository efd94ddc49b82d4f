import { setImmediate as nextTick } from 'node:timers/promises';
import { createMutex } from '../common/async.ts';
import { findUrlPasswords } from './scanners.ts';
import { mergeSpans, type SecretScanner, type Span } from './span.ts';

/** Read at one go; bounds what a text made for it can cost a rule that is not linear. */
const WINDOW = 64 * 1024;
/** No secret is longer, but for private keys, which our own rules find. */
const OVERLAP = 2 * 1024;

/** Directives in the text ("secretlint-disable") would let a text switch the rules off. */
const NOT_WANTED = '@secretlint/secretlint-rule-filter-comments';

type Meta = { readonly id: string };
type Found = { readonly range: readonly [number, number] };
type Source = {
  readonly content: string;
  readonly filePath: string;
  readonly ext: string;
  readonly contentType: 'text';
};
interface Rule {
  readonly meta: Meta;
  create(context: object, options: object): Check['check'];
}
interface Check {
  readonly id: string;
  readonly check: { file?(source: Source): void | Promise<void> };
}

/**
 * secretlint's recommended rules. They run without secretlint's core, which keeps a record of each run for ever and
 * obeys directives in the text.
 *
 * @param failed  hears of a rule that broke on a text; the others go on
 */
export function createSecretlint(failed: (rule: string, error: unknown) => void): SecretScanner {
  const spans: Span[] = [];
  let from = 0;
  let checks: Promise<readonly Check[]> | null = null;

  /** A megabyte of rules: read when the first text comes. */
  async function load(): Promise<readonly Check[]> {
    return (await recommended()).map((rule) => {
      const { meta } = rule;
      const type = typeOf(meta.id);
      const report = ({ range: [start, end] }: Found): void => {
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
        failed(id, error);
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
    return mergeSpans(spans.flatMap((span) => withinUrl(text, span)));
  }

  const lock = createMutex();
  return (text) => lock(() => scan(text));
}

async function recommended(): Promise<Rule[]> {
  const { creator } = await import('@secretlint/secretlint-rule-preset-recommend');
  const rules: Rule[] = [];
  creator.create({ registerRule: (rule: unknown) => void rules.push(rule as Rule), sharedOptions: {} } as never, {});
  return rules.filter(({ meta }) => meta.id !== NOT_WANTED);
}

/** Rules word a message for what they found; nobody reads it. */
const createTranslator = () => (messageId: string) => ({ message: '', messageId });

function typeOf(ruleId: string): string {
  const name = ruleId.split('secretlint-rule-')[1] ?? '';
  return name.replace(/[^a-z-]/g, '') || 'secret';
}

/** Of a URL only the password is a secret, and none where a variable stands for it. */
function withinUrl(text: string, span: Span): readonly Span[] {
  const found = text.slice(span.start, span.end);
  if (!/^[\w+.-]+:\/\//.test(found)) return [span];
  return findUrlPasswords(found).map(({ start, end }) => ({
    ...span,
    start: span.start + start,
    end: span.start + end,
  }));
}
