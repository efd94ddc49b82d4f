import { z } from 'zod';
import { getReason, type Problem } from '../../../common/errors.ts';
import { readFileIfPresent, writePrivateFile } from '../../../common/files.ts';
import type { HomePaths } from '../../../common/paths.ts';
import { parseJson, sha256 } from '../../../common/text.ts';
import { DEFAULT_ONTOLOGY } from '../../facts/default-ontology.ts';
import { mergeOntologies, type Ontology, type OntologyProblem, parseOntology } from '../../facts/ontology.ts';
import type { OntologyState } from '../fact-files.ts';

type Paths = Pick<HomePaths, 'ontologyFile' | 'ontologyConsentsFile'>;

/** What the user allowed: by project, file and digest of its text. A damaged file allows nothing. */
const Consents = z.record(z.string(), z.object({ file: z.string(), sha256: z.string() })).catch({});
type Consents = z.infer<typeof Consents>;

const NOTHING: Ontology = { version: '0.2', concepts: {} };
/** Facts of these are the user's, in every project: a file of a project cannot declare them. */
const OF_USER = /^Person\./i;

/** Reads the user's ontology, and what projects add to it after consent. */
export function openOntologies(paths: Paths): (scope: string) => Promise<OntologyState> {
  const cache = new Map<string, { readonly key: string; readonly state: OntologyState }>();
  return async (scope) => {
    const own = await readOrReason(paths.ontologyFile);
    const allowed = scope === '' ? null : ((await readConsents(paths))[scope] ?? null);
    const theirs = allowed === null ? null : await readOrReason(allowed.file);
    const key = JSON.stringify([own, allowed, theirs]);
    const before = cache.get(scope);
    if (before?.key === key) return before.state;
    const user = own === null ? { ontology: DEFAULT_ONTOLOGY, problems: [] } : parsed(paths.ontologyFile, own);
    const state = allowed === null ? user : joinOntologies(user, allowed, theirs);
    cache.set(scope, { key, state });
    return state;
  };
}

/** Lets the project's file add concepts, as its text is now. */
export async function allowOntology(
  paths: Paths,
  project: string,
  { file, text }: { readonly file: string; readonly text: string },
): Promise<void> {
  const all = { ...(await readConsents(paths)), [project]: { file, sha256: sha256(text) } };
  await writePrivateFile(paths.ontologyConsentsFile, `${JSON.stringify(all, null, 2)}\n`);
}

/** Concepts that a file of a project may add to those of the user, and why others may not. */
export function withProject(user: Ontology, project: Ontology): ReturnType<typeof mergeOntologies> {
  const concepts = { ...project.concepts };
  const refused = Object.keys(concepts).filter((name) => OF_USER.test(name) && delete concepts[name]);
  const merged = mergeOntologies(user, { ...project, concepts });
  const message = 'a project cannot declare concepts of the user';
  return {
    ...merged,
    warnings: [...refused.map((name) => ({ path: `concepts.${name}`, message })), ...merged.warnings],
  };
}

function joinOntologies(user: OntologyState, allowed: Consents[string], text: string | Error | null): OntologyState {
  const { file } = allowed;
  const without = (message: string): OntologyState => ({ ...user, problems: [...user.problems, { file, message }] });
  if (text === null) return user;
  if (typeof text === 'string' && sha256(text) !== allowed.sha256)
    return without('changed since it was allowed; comet-cc ontology allow takes it over');
  const project = parsed(file, text);
  const { ontology, warnings } = withProject(user.ontology, project.ontology);
  return { ontology, problems: [...user.problems, ...project.problems, ...getProblems(file, warnings)] };
}

function parsed(file: string, text: string | Error): OntologyState {
  if (typeof text !== 'string')
    return { ontology: NOTHING, problems: [{ file, message: `cannot be read: ${text.message}` }] };
  const value = parseJson(text);
  if (value === undefined) return { ontology: NOTHING, problems: [{ file, message: 'is no JSON' }] };
  const read = parseOntology(value);
  if (read.ok) return { ontology: read.ontology, problems: getProblems(file, read.warnings) };
  return { ontology: NOTHING, problems: getProblems(file, read.problems) };
}

function getProblems(file: string, problems: readonly OntologyProblem[]): Problem[] {
  return problems.map(({ path, message }) => ({ file, message: path === '' ? message : `${path}: ${message}` }));
}

function readOrReason(file: string): Promise<string | Error | null> {
  return readFileIfPresent(file).catch((error: unknown) => new Error(getReason(error)));
}

async function readConsents({ ontologyConsentsFile }: Paths): Promise<Consents> {
  return Consents.parse(parseJson((await readFileIfPresent(ontologyConsentsFile)) ?? ''));
}
