import { findNodeAtLocation, getNodeValue, type Node, type ParseError, parseTree } from 'jsonc-parser';
import { CometError } from '../../common/errors.ts';
import { inserted, removed, replaced } from '../json-splice.ts';
import type { Edit } from './ca-settings.ts';

/** Settings with these variables in their `env`, each in the place it had; all else stays as it is. @throws as `envOf` */
export function withEnv(text: string, env: Readonly<Record<string, string>>, file: string): string {
  if (envNode(text, file) === undefined) return inserted(text, treeOf(text, file), { key: 'env', value: env });
  let edited = text;
  for (const [name, value] of Object.entries(env)) {
    const own = findNodeAtLocation(treeOf(edited, file), ['env', name]);
    if (own === undefined) edited = inserted(edited, envNode(edited, file) as Node, { key: name, value });
    else if (own.value !== value) edited = replaced(edited, own, JSON.stringify(value));
  }
  return edited;
}

/**
 * Settings without what we set, as far as it is still there; what the user had in its place is back.
 *
 * @param original  the settings as they were before us: a value of them comes back in the form it had
 * @throws as `envOf`
 */
export function withoutEnv(
  text: string,
  edit: Pick<Edit, 'file' | 'values' | 'hadEnv'>,
  original: string | null,
): string {
  const { file, values, hadEnv } = edit;
  let edited = text;
  for (const value of values) {
    const own = findNodeAtLocation(treeOf(edited, file), ['env', value.name]);
    if (own === undefined || !isOurs(value, own.value)) continue;
    edited = value.former === undefined ? removed(edited, own) : replaced(edited, own, formerText(value, original));
  }
  const env = envNode(edited, file);
  const isLeftEmpty = edited !== text && env?.children?.length === 0 && !hadEnv;
  return isLeftEmpty ? removed(edited, env as Node) : edited;
}

/** Whether a value is the one that we set, or one that we set before. */
export function isOurs({ ours, past = [] }: Edit['values'][number], value: unknown): boolean {
  return value === ours || past.some((one) => one === value);
}

/** Null where there is none. @throws CometError `config_invalid` where it is no JSON of the expected shape */
export function envOf(text: string, file: string): Readonly<Record<string, unknown>> | null {
  const env = envNode(text, file);
  return env === undefined ? null : (getNodeValue(env) as Record<string, unknown>);
}

function formerText({ name, former }: Edit['values'][number], original: string | null): string {
  const own = original === null ? undefined : findNodeAtLocation(parseTree(original) as Node, ['env', name]);
  const text = own === undefined ? '' : (original as string).slice(own.offset, own.offset + own.length);
  const json = JSON.stringify(former);
  return text !== '' && JSON.stringify(getNodeValue(own as Node)) === json ? text : json;
}

function envNode(text: string, file: string): Node | undefined {
  return findNodeAtLocation(treeOf(text, file), ['env']);
}

function treeOf(text: string, file: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (errors.length > 0) throw new CometError('config_invalid', `${file} is not plain JSON; it was left alone`);
  const env = root === undefined ? undefined : findNodeAtLocation(root, ['env']);
  if (root?.type === 'object' && (env === undefined || env.type === 'object')) return root;
  throw new CometError('config_invalid', `${file}: an object was expected, as was its "env"; it was left alone`);
}
