import type { Problem } from '../../common/errors.ts';
import type { Ontology } from '../facts/ontology.ts';
import type { PageRewrite } from './page-files.ts';

/** Facts as markdown, one file for the user and one for each project. */
export interface FactFiles {
  /** Name of a scope's file: '' is the user, else the key of a project. */
  getName(scope: string): string;
  /** Path of a file, for messages. */
  getPath(name: string): string;
  texts(): Promise<ReadonlyMap<string, string>>;
  /** Makes the change where the file is as it was before; false, without a change, where somebody edited it. */
  replace(rewrite: PageRewrite): Promise<boolean>;
  /** What may be remembered in a project; '' for the user alone. A file that is invalid declares nothing. */
  ontology(scope: string): Promise<OntologyState>;
}

export interface OntologyState {
  /** The same object while the files are the same. */
  readonly ontology: Ontology;
  readonly problems: readonly Problem[];
}
