import path from 'node:path';
import { z } from 'zod';
import { createMutex, finishesWithin } from '../common/async.ts';
import { CometError, getMessage, getOnly } from '../common/errors.ts';
import { LruMap } from '../common/map.ts';
import { toRecord } from '../common/text.ts';
import { getStatements } from './facts.ts';
import { getTeammate, getTitle, isWaitingDraft, type MemoryNode } from './model/node.ts';
import { parseTask, patchTask } from './model/task.ts';
import type { MemoryParts } from './parts.ts';
import { withClosed } from './recall/project-state.ts';
import type { Bus } from './share/bus.ts';
import { checkHeld, checkMachines, getCards, getMachines, type JoinRequest } from './share/join.ts';
import { createLooked, newState, type ShareOptions, type ShareState, type StateFile } from './share/parts.ts';
import { openShare, type Share } from './share/service.ts';
import { createSharedPages } from './share-pages.ts';
import { createSharedTurns } from './share-turns.ts';
import type { Activity } from './tasks/judge.ts';

const TICK_MS = 15_000;
/** A session that begins looks for news that are older than this. */
const FRESH_MS = 60_000;
/** What is published by itself waits until no request came for so long. */
const IDLE_MS = 10_000;
/** A stop waits for the storage no longer than this; what is not sent then is sent at the next start. */
const LAST_PUSH_MS = 3_000;

export const shareAddress = z
  .string()
  .max(1_000)
  .refine(
    (url) => /^(?:s3|gs|az|db):\/\/[^/]|^\//.test(url),
    'expected s3://, gs://, az://, db:// or an absolute folder',
  )
  .refine((url) => !/^[^/].*[\s?#@]/.test(url), 'credentials belong into the environment, not into the address');

export type Sharing = ReturnType<typeof createSharing>;
export type ShareReport = NonNullable<Awaited<ReturnType<Sharing['status']>>>;

interface Parts extends MemoryParts {
  readonly share: ShareOptions;
  readonly started: Promise<void>;
  readonly follow: () => Promise<void>;
  readonly activity?: () => Activity;
}

type Opener = ReturnType<typeof createOpener>;

/** Opens the storage for one step. */
function createOpener(parts: Parts, signal: AbortSignal) {
  const { catalogue, clock, priority, share: options, started } = parts;
  const stateFile = cached(options.stateFile);
  let { env } = options;
  let reading: { readonly rows: number } | null = null;
  const looked = createLooked();
  const connection = createConnection(parts);

  const memory = {
    ...createSharedTurns(parts),
    ...createSharedPages(parts),
    ...{ nodes: () => [...catalogue.every()], revision: catalogue.revision },
    async save(nodes: readonly MemoryNode[]): Promise<void> {
      const fresh = nodes.filter(({ node_id, project }) => catalogue.get(node_id)?.project !== project);
      await parts.store.save(nodes.map((node) => withEnds(node, catalogue.get(node.node_id))));
      // What a teammate says makes no facts.
      const own = fresh.filter((node) => node.kind === 'turn' && node.facts.length > 0 && getTeammate(node) === null);
      for (const node of own)
        await parts.facts.readPast(getStatements(node), { project: node.project, sessionId: node.session_id });
    },
    tasks: parts.tasks.texts,
    saveTask: parts.tasks.receive,
    removeTask: parts.tasks.drop,
    async remove(nodeIds: readonly string[]): Promise<void> {
      const nodes = nodeIds.flatMap((id) => catalogue.get(id) ?? []);
      if (nodes.length > 0) await parts.removal.remove(nodes, undefined, null);
    },
  };

  const nameOf = (project: string): string => (path.isAbsolute(project) ? parts.getProject(project) : project);
  const withBus = <T>(url: string, step: (bus: Bus) => Promise<T>): Promise<T> => connection.use(url, env, step);

  /** @throws CometError `usage` where nothing is shared, `share_failed` */
  async function withShare<T>(use: (share: Share) => Promise<T>, settings = options.settings()): Promise<T> {
    const { url, scope, projects, trusted, raw } = settings;
    const state = url === '' ? null : await stateFile.load();
    if (state === null || state.url !== url) throw noneShared();
    await started;
    const passphrase = await options.passphrase(env);
    const isWaiting = (node: MemoryNode): boolean => options.keepsDrafts && isWaitingDraft(node, clock.now());
    const getKey = onceEach(nameOf);
    const isForbidden = onceEach(options.isForbidden);
    const rules = { scope, projects, raw: raw && scope === 'me', isForbidden, isWaiting, getKey };
    return withBus(url, async (bus) => {
      const read = (rows: number): void => {
        reading = { rows: (reading?.rows ?? 0) + rows };
      };
      const steps = { bus, memory, rules, trusted, passphrase, looked, rest: priority.rest, onRead: read };
      const others = { stateFile, removed: options.removed, redactor: parts.redactor, now: clock.now, signal };
      return use(await openShare({ ...steps, ...others }, state));
    });
  }

  /** What was said or written here in a folder before it joined its remote is of the remote's project, as elsewhere. */
  async function adopt(): Promise<void> {
    const getKey = onceEach((project) => (path.isAbsolute(nameOf(project)) ? project : nameOf(project)));
    const moved = <T extends { readonly project: string }>(one: T): T => ({ ...one, project: getKey(one.project) });
    const isHere = (sessionId: string): boolean => parts.turnRegistry.session(sessionId) !== undefined;
    const nodes = catalogue.every().filter((node) => getKey(node.project) !== node.project && isHere(node.session_id));
    for (const sessionId of new Set(nodes.map(({ session_id }) => session_id))) {
      const brief = await parts.nodeFiles.readBrief(sessionId);
      if (brief !== null) await parts.nodeFiles.writeBrief(moved(brief));
    }
    await memory.save(nodes.map(moved));
    await memory.adopt(getKey);
    for (const { name, text } of await memory.tasks()) {
      const { project = '' } = toRecord(parseTask(text, name)) as { readonly project?: string };
      const key = getKey(project);
      if (key !== project) await memory.saveTask({ name, text: patchTask(text, { project: key }) });
    }
  }

  return {
    ...{ stateFile, withBus, withShare, adopt, closeBus: connection.close },
    /** Rows that the pull that runs has read; null where none runs. */
    reading: () => reading,
    changedApart: memory.changedApart,
    /** With the credentials of the shell that asked last. */
    passphrase: () => options.passphrase(env),
    use(callerEnv: NodeJS.ProcessEnv): void {
      if (Object.entries(callerEnv).some(([name, value]) => env[name] !== value)) env = { ...env, ...callerEnv };
    },
    async pullAll(share: Share): Promise<void> {
      reading = { rows: 0 };
      await share.pull().finally(() => {
        reading = null;
      });
    },
  };
}

/** What was ended here in a teammate's memory stays so when its publisher changes the memory. */
const withEnds = (node: MemoryNode, here: MemoryNode | undefined): MemoryNode =>
  here === undefined || getTeammate(node) === null ? node : withClosed(node, [here]);

/** Steps one after the other; what fails is said in `status`. */
function createExchange(parts: Parts, { pullAll, withShare, adopt, closeBus }: Opener, closing: AbortController) {
  const { catalogue, clock, log, share: options, started } = parts;
  const inTurn = createSteps();
  let problem = '';
  let triedMs = Number.NEGATIVE_INFINITY;
  let pushedRevision = -1;

  function report(error: unknown): void {
    problem = getMessage(error).split('\n')[0] as string;
    if (!(error instanceof CometError)) log.error('sharing failed', { error });
  }

  /** What fails is said in `status`; a wrong use is for the user alone who asked. */
  function runStep<T>(step: (share: Share) => Promise<T>, before = parts.follow, isAsked = true): Promise<T> {
    return inTurn(async () => {
      try {
        await before();
        const result = await withShare(step);
        problem = '';
        return result;
      } catch (error) {
        const isTold = isAsked && error instanceof CometError && error.code === 'usage';
        if (!(isTold || closing.signal.aborted)) report(error);
        throw error;
      }
    });
  }

  /** Where it fails it is tried again later. */
  function quietly(step: (share: Share) => Promise<unknown>): Promise<boolean> {
    triedMs = clock.now();
    const done = runStep(step, async () => undefined, false).then(() => true);
    return done.catch(() => false);
  }

  async function pushAll(share: Share): Promise<number> {
    await adopt();
    const revision = catalogue.revision();
    const sent = await share.push();
    pushedRevision = revision;
    return sent;
  }

  async function pushNews(share: Share): Promise<void> {
    const { changed, tasks, blocks, gone, withdrawn } = await share.preview();
    const isWaiting = share.state().outbox.length > 0;
    const lists = [changed, tasks, blocks.leaving, gone, withdrawn];
    if (isWaiting || lists.some((list) => list.length > 0)) await pushAll(share);
  }

  async function tick(): Promise<void> {
    const { url, intervalMinutes } = options.settings();
    if (url === '' || intervalMinutes === 0 || inTurn.isBusy()) return;
    const { answering = 0, lastRequestMs = 0 } = parts.activity?.() ?? {};
    const isIdle = answering === 0 && clock.now() - lastRequestMs > IDLE_MS;
    const isDue = clock.now() - triedMs > intervalMinutes * 60_000;
    const hasNews = catalogue.revision() !== pushedRevision && problem === '';
    if (isDue) await quietly(pullAll);
    if (isIdle && (isDue || hasNews)) await quietly(pushAll);
  }

  const timer = setInterval(() => void tick().catch(report), TICK_MS);
  timer.unref();
  void started.then(tick).catch(report);

  return {
    ...{ inTurn, asked: runStep, pushAll },
    /** As by itself when it is due. */
    exchange: async () => (await quietly(pullAll)) && (await quietly(pushAll)),
    problem: () => problem,
    ended(): void {
      problem = '';
    },
    /** A session begins: news are looked for in the background. */
    wake(): void {
      const { url, intervalMinutes } = options.settings();
      if (url === '' || intervalMinutes === 0 || clock.now() - triedMs < FRESH_MS || inTurn.isBusy()) return;
      void quietly(pullAll);
    },
    /** Publishes what is new, for a few seconds at most. */
    async close(): Promise<void> {
      clearInterval(timer);
      const { url, intervalMinutes } = options.settings();
      if (url !== '' && intervalMinutes > 0) await finishesWithin(quietly(pushNews), LAST_PUSH_MS);
      closing.abort(new Error('memory is closing'));
      await finishesWithin(inTurn.idle(), LAST_PUSH_MS);
      closeBus();
    },
  };
}

const noneShared = (): CometError =>
  new CometError('usage', 'nothing is shared; begin with: comet-cc share init URL --scope me|team');

type Exchange = ReturnType<typeof createExchange>;

/** What the user asks for, with the credentials of the shell that asks. */
function createRequests({ catalogue, share: options }: Parts, { use, pullAll }: Opener, { asked, pushAll }: Exchange) {
  function askedIn<T>(callerEnv: NodeJS.ProcessEnv, ...request: Parameters<typeof asked<T>>): Promise<T> {
    use(callerEnv);
    return asked(...request);
  }

  return {
    /** Nodes that would leave, as they would, and how many stay for which reason. */
    preview: (callerEnv: NodeJS.ProcessEnv) =>
      askedIn(callerEnv, async (share) => {
        const { changed, tasks, blocks, told, withdrawn, kept, turns } = await share.preview();
        return {
          nodes: changed.map(({ said: { node } }) => ({ ...node, title: getTitle(node) })),
          ...{ removed: told.length, withdrawn: withdrawn.length },
          tasks: tasks.map(({ said: { name, text } }) => ({ name, text })),
          /** What was written into pages by hand, as it would leave; without a text: what would be taken out. */
          pages: blocks.leaving.map(({ said }) => ({
            file: said.block?.page.file ?? '',
            text: said.block?.text ?? null,
          })),
          ...{ turns: turns.length, kept },
        };
      }),
    /** Returns how many rows were sent. */
    push: (callerEnv: NodeJS.ProcessEnv) => askedIn(callerEnv, pushAll),
    /** Returns how many memories were added. */
    pull: (callerEnv: NodeJS.ProcessEnv) => {
      const pull = async (share: Share): Promise<number> => {
        const before = catalogue.size();
        await pullAll(share);
        return Math.max(0, catalogue.size() - before);
      };
      // Needs no look at what was edited by hand: files are read again before each is written.
      return askedIn(callerEnv, pull, async () => undefined);
    },
    /** What the named teammate's machine says counts as what an assistant said. @throws CometError `usage`, `not_found` */
    trust: (who: string, isTrusted: boolean) =>
      asked(async (share) => {
        const peers = Object.values(share.state().peers).filter(
          ({ machine, name }) => name === who || (who.length >= 4 && machine.startsWith(who)),
        );
        const none = `no machine is called ${who}; see comet-cc share status`;
        const peer = getOnly(peers, none, `${who} fits several machines; give an id`);
        const others = options.settings().trusted.filter((machine) => machine !== peer.machine);
        await options.keepSettings({ trusted: isTrusted ? [...others, peer.machine] : others });
        await share.readAgain(peer.machine);
        return { name: peer.name, machine: peer.machine };
      }),
  };
}

/** Publishes memory to the user's other machines or a team, and takes over theirs. Recall never waits for it. */
export function createSharing(parts: Parts) {
  const { share: options } = parts;
  const closing = new AbortController();
  const opener = createOpener(parts, closing.signal);
  const exchange = createExchange(parts, opener, closing);
  const { stateFile, use, pullAll, withBus, withShare } = opener;
  const { inTurn, pushAll } = exchange;

  return {
    /** Null where nothing is shared. */
    async status() {
      const { url: held, projects, trusted } = options.settings();
      const state = await stateFile.load();
      const url = held || (state?.leaving ?? '');
      if (state === null || url === '') return null;
      return {
        ...{ url, scope: state.scope, projects, name: state.name, machine: state.machine, sealed: state.salt !== null },
        ...{ pushed_at: state.pushed, pulled_at: state.pulled, waiting: state.outbox.length },
        ...{ restarted: state.restarted, reading: opener.reading() },
        machines: getMachines(state, trusted),
        changed_apart: await opener.changedApart(),
        /** What it published is still there, because the storage did not answer. */
        left: held === '',
        problem: exchange.problem(),
      };
    },
    /** What the machines at an address share. @throws CometError `usage`, `share_failed` */
    look: ({ url, env }: { readonly url: string; readonly env: NodeJS.ProcessEnv }) =>
      inTurn(async () => {
        use(env);
        const cards = await withBus(url, async (bus) => getCards(bus, (await stateFile.load())?.machine ?? ''));
        return checkMachines({ url, scope: null, projects: null, name: '' }, cards, false, await opener.passphrase());
      }),
    /**
     * The first machine at an address, or one more.
     * @param isFirst  whether nothing may be there yet
     * @throws CometError `usage`, `share_failed`
     */
    join: (request: JoinRequest, isFirst: boolean, callerEnv: NodeJS.ProcessEnv) =>
      inTurn(async () => {
        use(callerEnv);
        const passphrase = await opener.passphrase();
        const before = await stateFile.load();
        if (before !== null) checkHeld(options.settings(), request);
        const cards = await withBus(request.url, (bus) => getCards(bus, before?.machine ?? ''));
        const settings = { ...options.settings(), ...(await checkMachines(request, cards, isFirst, passphrase)) };
        const { url, scope, name } = settings;
        const isSame = before !== null && before.url === url && before.scope === scope && before.name === name;
        if (!isSame) {
          if (before !== null) await withBus(url, (bus) => bus.drop(before.machine));
          await stateFile.save(newState({ url, scope, name }, passphrase !== null, before));
        }
        await withShare(async (share) => {
          await pullAll(share);
          await pushAll(share);
        }, settings);
        await options.keepSettings({ url, scope, projects: settings.projects, name });
        return { url, scope, projects: settings.projects, name, machines: cards.length };
      }),
    ...createRequests(parts, opener, exchange),
    /** Takes this machine's memory off the storage, or tries again to; what was received stays, and who it is. */
    leave: (callerEnv: NodeJS.ProcessEnv) =>
      inTurn(async () => {
        use(callerEnv);
        let problem = '';
        const note = (error: unknown): void => {
          problem = getMessage(error).split('\n')[0] as string;
        };
        const before = await stateFile.load().catch(note);
        const url = before?.url || before?.leaving;
        if (before === null || url === '') throw noneShared();
        await options.keepSettings({ url: '', scope: 'me', projects: [], trusted: [], name: '' });
        if (!before || !url) await stateFile.remove();
        else {
          const left = newState({ ...before, url: '' }, before.salt !== null, before);
          await stateFile.save({ ...left, leaving: url });
          await withBus(url, (bus) => bus.drop(before.machine)).then(() => stateFile.save(left), note);
        }
        opener.closeBus();
        exchange.ended();
        return { problem };
      }),
    exchange: exchange.exchange,
    wake: exchange.wake,
    problems: () => (exchange.problem() === '' ? [] : [{ file: 'share', message: exchange.problem() }]),
    close: exchange.close,
  };
}

/** One connection while all goes well: what was read of the storage is known then. */
function createConnection({ priority, share: options }: Pick<Parts, 'priority' | 'share'>) {
  let held: { readonly url: string; readonly env: NodeJS.ProcessEnv; readonly bus: Bus } | null = null;

  function close(): void {
    held?.bus.close();
    held = null;
  }

  return {
    close,
    async use<T>(url: string, env: NodeJS.ProcessEnv, step: (bus: Bus) => Promise<T>): Promise<T> {
      if (held?.url !== url || held.env !== env) {
        close();
        held = { url, env, bus: lazyBus(() => options.openBus(url, env), priority.rest) };
      }
      try {
        return await step(held.bus);
      } catch (error) {
        close();
        throw error;
      }
    },
  };
}

/** Connects on first use: what is to leave is queued on disk also where the storage cannot be reached. */
function lazyBus(open: () => Promise<Bus>, rest: () => Promise<void>): Bus {
  let opened: Promise<Bus> | null = null;
  const bus = async (): Promise<Bus> => {
    await rest();
    opened ??= open();
    return opened;
  };
  return {
    machines: async () => (await bus()).machines(),
    append: async (...args) => (await bus()).append(...args),
    read: async (...args) => (await bus()).read(...args),
    stamp: async (...args) => (await bus()).stamp(...args),
    last: async (...args) => (await bus()).last(...args),
    erase: async (...args) => (await bus()).erase(...args),
    drop: async (...args) => (await bus()).drop(...args),
    close: () => void opened?.then((found) => found.close()).catch(() => undefined),
  };
}

/** Of the same project, the answer of the first time: it takes a look at the disk, and there are many memories. */
function onceEach<T extends string | boolean>(of: (project: string) => T): (project: string) => T {
  const answers = new LruMap<string, T>(Number.POSITIVE_INFINITY);
  return (project) => answers.getOrCreate(project, () => of(project));
}

/** The engine is the one writer of its home. */
function cached(file: StateFile): StateFile {
  let savedState: Promise<ShareState | null> | null = null;
  return {
    load: () => (savedState ??= file.load()),
    async save(state) {
      await file.save(state);
      savedState = Promise.resolve(state);
    },
    async remove() {
      savedState = null;
      await file.remove();
    },
  };
}

/** One step after the other. */
function createSteps() {
  const lock = createMutex();
  let running = 0;
  const run = <T>(step: () => Promise<T>): Promise<T> => {
    running += 1;
    return lock(step).finally(() => {
      running -= 1;
    });
  };
  return Object.assign(run, { isBusy: () => running > 0, idle: () => lock(async () => undefined) });
}
