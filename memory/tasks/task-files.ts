import type { Task, TaskListing, TaskPatch } from '../model/task.ts';

export interface TaskText {
  /** As `active/x.md` or `done/2026-11/x.md`. */
  readonly name: string;
  readonly text: string;
}

/** Task files and inbox pages. Every change is atomic and durable once it resolves. */
export interface TaskFiles {
  /** Active and blocked tasks, with `all` done ones too, ordered by name; a file that does not validate is a problem. */
  load(all?: boolean): Promise<TaskListing>;
  /** Creates a file under a free name that begins with `stem`. @returns the task with that name */
  add(stem: string, task: Omit<Task, 'name'>): Promise<Task>;
  /**
   * Sets these values in the file as it is now; a new status moves it.
   * @param month  `2026-11`, where a task that becomes done is filed
   * @throws CometError `not_found`, `node_invalid`
   */
  update(name: string, patch: TaskPatch, month: string): Promise<Task>;
  /** @throws CometError `not_found` */
  remove(name: string): Promise<void>;
  getFile(name: string): string | null;
  /** The page of `day` (`2026-11-24`); '' where there is none. */
  readInbox(day: string): Promise<string>;
  /** Appends a line to the page of `day`, unless the page has it. */
  addToInbox(day: string, line: string): Promise<void>;
  /** Removes these lines from every page. */
  cleanInbox(isGone: (line: string) => boolean): Promise<void>;
  /** Every task file, readable or not, as `active/x.md` with its text, ordered by name. */
  texts(): Promise<readonly TaskText[]>;
  /** Creates the file unless it would not validate, or a task has its name. */
  restore(file: TaskText): Promise<boolean>;
  /** Writes the file in place of the one that its task had, which may be in another folder. @throws CometError `node_invalid` */
  replace(file: TaskText): Promise<void>;
  /** The page of a topic; '' where there is none. */
  readTopic(topic: string): Promise<string>;
}
