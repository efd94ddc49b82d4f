export interface Pause {
  readonly mode: 'private' | 'off';
  /** ISO. */
  readonly since: string;
  /** Null: until `resume`. */
  readonly until: string | null;
}

export interface Pauses {
  /** Those that are over: what was said in them stays out, whenever it is offered again. `project` null: everywhere. */
  readonly past: readonly { readonly project: string | null; readonly since: string; readonly until: string }[];
  readonly everywhere: Pause | null;
  /** By project key, see `memory/model/project.ts`. */
  readonly projects: Readonly<Record<string, Pause>>;
}

export const NO_PAUSES: Pauses = { past: [], everywhere: null, projects: {} };

/** What is asked for by `pause` and still holds; what does not is past. */
export function standing(asked: Pauses, nowMs: number): Pauses {
  const { everywhere, projects } = asked;
  const holds = ({ until }: Pause): boolean => until === null || Date.parse(until) > nowMs;
  const over = (project: string | null, one: Pause): Pauses['past'] => (holds(one) ? [] : [ended(project, one, nowMs)]);
  return {
    past: [
      ...asked.past,
      ...(everywhere === null ? [] : over(null, everywhere)),
      ...Object.entries(projects).flatMap(([project, one]) => over(project, one)),
    ],
    everywhere: everywhere !== null && holds(everywhere) ? everywhere : null,
    projects: Object.fromEntries(Object.entries(projects).filter(([, one]) => holds(one))),
  };
}

/** Whether anything said there and then was said in a pause. */
export function wasPaused(
  { past, everywhere, projects }: Pauses,
  project: string,
  fromMs: number,
  toMs: number,
): boolean {
  const holdsFor = (since: string, until: string | null): boolean =>
    Date.parse(since) <= toMs && (until === null || Date.parse(until) >= fromMs);
  const own = [everywhere, projects[project]].flatMap((one) => (one ? [one] : []));
  const over = past.filter((one) => one.project === null || one.project === project);
  return [...own, ...over].some(({ since, until }) => holdsFor(since, until));
}

function ended(project: string | null, { since, until }: Pause, nowMs: number): Pauses['past'][number] {
  const endMs = Math.min(nowMs, until === null ? nowMs : Date.parse(until));
  return { project, since, until: new Date(endMs).toISOString() };
}

/** `project` null: everywhere. What it takes the place of is over when it begins. */
export function paused(before: Pauses, project: string | null, asked: Pause): Pauses {
  const former = project === null ? before.everywhere : before.projects[project];
  const from = former ? { ...before, past: [...before.past, ended(project, former, Date.parse(asked.since))] } : before;
  if (project === null) return { ...from, everywhere: asked };
  return { ...from, projects: { ...from.projects, [project]: asked } };
}

/** `project` null: every pause there is. */
export function resumed(from: Pauses, project: string | null, nowMs: number): Pauses {
  const { everywhere } = from;
  const own = Object.entries(from.projects).filter(([name]) => project === null || name === project);
  const past = [
    ...from.past,
    ...(project === null && everywhere !== null ? [ended(null, everywhere, nowMs)] : []),
    ...own.map(([name, one]) => ended(name, one, nowMs)),
  ];
  if (project === null) return { ...NO_PAUSES, past };
  const { [project]: _, ...projects } = from.projects;
  return { ...from, past, projects };
}
