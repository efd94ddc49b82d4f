import { z } from 'zod';
import { Config, type ConfigKey, configKeys } from '../../common/config.ts';

const HEAD = `# Configuration

Set a key with \`comet-cc config set KEY VALUE\` (it goes to \`config.json\` in \`~/.comet-cc\`), or with its environment
variable, which takes precedence. \`comet-cc config --all\` prints the values in effect. A running engine reads a change
after \`comet-cc restart\`, a new port with \`comet-cc restart --port N\`.

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
      `| \`${key}\` | \`${variable}\` | ${fallback === '' ? '' : `\`${fallback}\``} | ${description.replaceAll('|', '\\|')}${choices(key)} |`,
  );
  return ['| key | variable | default | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

/** The values that a key may have, where they are few. */
function choices(key: string): string {
  let schema: unknown = key
    .split('.')
    .reduce<unknown>((at, name) => (unwrapped(at) as z.ZodObject).shape[name], Config);
  schema = unwrapped(schema);
  if (!(schema instanceof z.ZodEnum)) return '';
  return `; one of ${schema.options.map((value) => (value === '' ? 'empty' : `\`${value}\``)).join(', ')}`;
}

function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) return unwrapped(schema.unwrap());
  return schema instanceof z.ZodPipe ? unwrapped(schema.out) : schema;
}
