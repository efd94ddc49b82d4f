import { type ConfigKey, configKeys } from '../../common/config.ts';

const HEAD = `# Configuration

Set a key with \`comet-cc config set KEY VALUE\` (it goes to \`config.json\` in \`~/.comet-cc\`), or with its environment
variable, which takes precedence. \`comet-cc config --all\` prints the values in effect. A running engine reads a change
after \`comet-cc restart\`.

This file is generated from the schema in \`common/config.ts\`: \`npm run docs:config\`.
`;

/** What `docs/CONFIG.md` must contain. */
export function configMarkdown(): string {
  const groups = new Map<string, ConfigKey[]>();
  for (const key of configKeys()) {
    const group = key.key.split('.').slice(0, -1).join('.');
    groups.set(group, [...(groups.get(group) ?? []), key]);
  }
  const sections = [...groups].map(([group, keys]) => `## ${group || 'general'}\n\n${markdownTable(keys)}\n`);
  return [HEAD, ...sections].join('\n');
}

function markdownTable(keys: readonly ConfigKey[]): string {
  const rows = keys.map(
    ({ key, variable, fallback, description }) =>
      `| \`${key}\` | \`${variable}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${description.replaceAll('|', '\\|')} |`,
  );
  return ['| key | variable | default | meaning |', '|---|---|---|---|', ...rows].join('\n');
}
