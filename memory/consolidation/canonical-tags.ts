/** Canonical forms of abbreviations and variants. */
const SYNONYMS: Readonly<Record<string, string>> = {
  db: 'database',
  auth: 'authentication',
  authn: 'authentication',
  config: 'configuration',
  settings: 'configuration',
  setting: 'configuration',
  doc: 'documentation',
  dep: 'dependency',
  deploy: 'deployment',
  deploys: 'deployment',
  env: 'environment',
  perf: 'performance',
  k8s: 'kubernetes',
  js: 'javascript',
  ts: 'typescript',
  py: 'python',
  repo: 'repository',
  test: 'testing',
  build: 'building',
  migrate: 'migration',
  postgresql: 'postgres',
  pg: 'postgres',
  bugfix: 'bug',
  sec: 'security',
};
/** Words whose final "s" is not a plural. */
const NO_PLURAL = /(?:ss|us|is|ics|ews|js|os|as|ls|dns|tls|aws|css|https?)$/;

/** System tags (`FLAG:decision`) are never normalized. */
function isContentTag(tag: string): boolean {
  return !tag.includes(':');
}

/** Equal for variants of one tag. */
export function tagKey(tag: string): string {
  const words = tag
    .normalize('NFKC')
    .replace(/(?<=\p{Ll})(?=\p{Lu})/gu, '-')
    .toLowerCase()
    .split(/[\s_./-]+/)
    .filter((word) => word !== '');
  return words.map(keyOfWord).join('');
}

function keyOfWord(word: string): string {
  const known = SYNONYMS[word];
  if (known !== undefined) return known;
  const one = singular(word);
  return SYNONYMS[one] ?? one;
}

function singular(word: string): string {
  if (word.length < 4 || NO_PLURAL.test(word)) return word;
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  if (/(?:ch|sh|x|z|ss)es$/.test(word)) return word.slice(0, -2);
  return word.endsWith('s') ? word.slice(0, -1) : word;
}

/**
 * Maps less used variants to the most used one; ties: the shorter, then the first in order.
 *
 * @param tags  with repetitions
 */
export function canonicalTags(tags: readonly string[]): ReadonlyMap<string, string> {
  const uses = new Map<string, number>();
  for (const tag of tags) if (isContentTag(tag)) uses.set(tag, (uses.get(tag) ?? 0) + 1);
  const best = new Map<string, string>();
  for (const [tag, count] of uses) {
    const key = tagKey(tag);
    const known = best.get(key);
    if (known === undefined || isBetter([tag, count], [known, uses.get(known) ?? 0])) best.set(key, tag);
  }
  const forms = [...uses.keys()].map((tag) => [tag, best.get(tagKey(tag)) as string] as const);
  return new Map(forms.filter(([tag, form]) => tag !== form));
}

/** Returns the same list if nothing changes. */
export function canonicalizeTags(tags: readonly string[], forms: ReadonlyMap<string, string>): readonly string[] {
  if (!tags.some((tag) => forms.has(tag))) return tags;
  return [...new Set(tags.map((tag) => forms.get(tag) ?? tag))];
}

function isBetter([tag, count]: readonly [string, number], [known, often]: readonly [string, number]): boolean {
  if (count !== often) return count > often;
  return tag.length !== known.length ? tag.length < known.length : tag < known;
}
