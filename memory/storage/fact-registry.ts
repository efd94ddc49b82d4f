import type { Clock } from '../../common/async.ts';
import { CometError, type Problem } from '../../common/errors.ts';
import { createFactStore, type FactStore, type Similarity } from '../facts/fact-store.ts';
import type { FactFiles, OntologyState } from './fact-files.ts';
import { type FactPage, findScope, parseFactPage, renderFactPage, withFactsOf, withoutFacts } from './fact-markdown.ts';

export interface Scope {
  readonly name: string;
  /** '' for the user, else the key of its project. */
  readonly project: string;
  readonly text: string | null;
  readonly state: OntologyState;
  readonly store: FactStore;
  readonly page: Pick<FactPage, 'others' | 'problems'>;
}

interface Parts {
  readonly files: FactFiles;
  readonly clock: Clock;
  readonly similarity: Similarity | null;
}

const TRIES = 3;
const NO_PAGE = { others: [], problems: [] };

/** Fact files with their stores. One caller at a time; disk wins over what is held. */
export class FactRegistry {
  readonly #scopes = new Map<string, Scope>();
  readonly #unread = new Map<string, Problem>();
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Reads what changed on disk. */
  async load(): Promise<void> {
    const { files } = this.#parts;
    const texts = await files.texts();
    this.#unread.clear();
    for (const [name, { text, project }] of this.#scopes) {
      if (text === null) await this.#open(name, project, null);
      else if (!texts.has(name)) this.#scopes.delete(name);
    }
    for (const [name, text] of texts) {
      const project = findScope(text);
      if (project !== null && files.getName(project) === name) await this.#open(name, project, text);
      else {
        this.#scopes.delete(name);
        const message = 'has no front matter with `scope: user`, or with the project that its name stands for';
        this.#unread.set(name, { file: files.getPath(name), message });
      }
    }
  }

  async #open(name: string, project: string, text: string | null): Promise<Scope> {
    const { files, clock, similarity } = this.#parts;
    const state = await files.ontology(project);
    const before = this.#scopes.get(name);
    if (before !== undefined && before.text === text && before.state === state) return before;
    const page = text === null ? null : parseFactPage(text, state.ontology, new Date(clock.now()).toISOString());
    const store = createFactStore({
      ontology: state.ontology,
      ...(similarity === null ? {} : { similarity }),
      ...(page === null ? {} : { state: { version: 1, facts: page.facts, closed: page.closed } }),
    });
    const scope = { name, project, text, state, store, page: page ?? NO_PAGE };
    this.#scopes.set(name, scope);
    return scope;
  }

  /** Null where the file cannot be read: it is left alone. */
  async of(project: string): Promise<Scope | null> {
    const name = this.#parts.files.getName(project);
    return this.#unread.has(name) ? null : this.#open(name, project, this.#scopes.get(name)?.text ?? null);
  }

  /** Of a project and the user; of every project where it is null. */
  near(project: string | null): Scope[] {
    return [...this.#scopes.values()].filter((scope) => project === null || ['', project].includes(scope.project));
  }

  /** Changes a scope, and writes it where `isChange` says so: decay waits for the next change. Null: unreadable. */
  async change<T>(
    project: string,
    work: (store: FactStore) => T,
    isChange: (result: T) => boolean | Promise<boolean> = () => true,
  ): Promise<T | null> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const scope = await this.of(project);
      if (scope === null) return null;
      const result = work(scope.store);
      if (!(await isChange(result)) || (await this.save(scope))) return result;
      this.#scopes.delete(scope.name);
      await this.load();
    }
    const { files } = this.#parts;
    throw new CometError('journal_failed', `${files.getPath(files.getName(project))} changes while it is written`);
  }

  /** False where somebody edited the file meanwhile. */
  async save({ name, project, text: before, state, store, page }: Scope): Promise<boolean> {
    const { facts, closed } = store;
    const isEmpty = facts.length + closed.length + page.others.length === 0;
    const after = isEmpty ? null : renderFactPage(project, { facts, closed, others: page.others });
    if (after === before) return true;
    if (!(await this.#parts.files.replace({ name, before, after }))) return false;
    this.#scopes.set(name, { name, project, text: after, state, store, page });
    return true;
  }

  async removeTurns(turnIds: ReadonlySet<string>): Promise<void> {
    for (const { project } of this.near(null))
      await this.rewrite(project, (text) => text && withoutFacts(text, ({ turn }) => turnIds.has(turn)));
  }

  /** Writes these files where there are none; `adds`: and the facts that others do not have any more. */
  async restore(given: ReadonlyMap<string, string>, adds: boolean, keepsFiles: boolean): Promise<void> {
    const { files } = this.#parts;
    const texts = await files.texts();
    for (const name of new Set([...texts.keys(), ...given.keys()])) {
      const [before, then] = [texts.get(name) ?? null, given.get(name) ?? null];
      const whole = keepsFiles ? (before ?? then) : then;
      const isAdded = adds && before !== null && then !== null;
      const after = isAdded ? withFactsOf(findScope(then) ?? '', before, then) : whole;
      if (after !== before) await files.replace({ name, before, after });
    }
    await this.load();
  }

  /** Changes the text of a scope's file; of one that cannot be read nothing. */
  async rewrite(project: string, change: (text: string | null) => string | null): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const scope = await this.of(project);
      const after = scope === null ? null : change(scope.text);
      if (scope === null || after === scope.text) return;
      const isWritten = await this.#parts.files.replace({ name: scope.name, before: scope.text, after });
      await this.load();
      if (isWritten) return;
    }
  }

  problems(): Problem[] {
    const { files } = this.#parts;
    const ofLines = this.near(null).flatMap(({ name, page }) =>
      page.problems.map((message) => ({ file: files.getPath(name), message })),
    );
    // An ontology that cannot be read comes first: it is why its lines cannot.
    const all = [...this.near(null).flatMap(({ state }) => state.problems), ...this.#unread.values(), ...ofLines];
    const keys = all.map(({ file, message }) => `${file}\n${message}`);
    return all.filter((_, at) => keys.indexOf(keys[at] as string) === at);
  }
}
