import { z } from 'zod';
import type { Activity, Budget, Memory, MemoryStatus, ShareReport, Sharing, Tasks } from '../../memory/index.ts';
import type { ProxyStats, RecallCounts } from '../../proxy/index.ts';
import type { CostLedger, Receipts } from '../../proxy/ledger/index.ts';
import type { Access } from '../policy/guard.ts';
import type { Policy } from '../policy/index.ts';
import type { PauseSwitch, Pauses } from '../policy/pause.ts';
import type { Seals } from '../policy/seal.ts';
import type { SessionTitles } from '../transcript/session-titles.ts';
import type { Costs } from './cost.ts';
import type { HookHandlers } from './hooks.ts';
import type { ClaudeImport } from './import-claude.ts';
import type { requestCounts } from './summary.ts';
import type { Health } from './ui/doctor.ts';
import type { Removals } from './ui/forget.ts';
import type { Undo } from './ui/snapshot.ts';

export interface EngineServices {
  readonly memory: Memory;
  readonly tasks: Tasks;
  readonly sharing: Sharing;
  readonly access: Access;
  readonly policy: Pick<Policy, 'of' | 'pauses' | 'problems'>;
  readonly hooks: HookHandlers;
  readonly claudeImport: ClaudeImport;
  readonly receipts: Pick<Receipts, 'list' | 'ofSession' | 'forget'>;
  /** Settles once the store is open, or failed to open. */
  readonly opened: () => Promise<unknown>;
  readonly requests: () => EngineStatus['requests'];
  readonly recalls: () => RecallCounts;
  readonly costs: () => Costs;
  /** Problems outside memory and policy. */
  readonly problems: () => EngineStatus['problems'];
  /** Tokens that memory's own model calls may use: see `EngineStatus.budget`. */
  readonly budget: () => ModelBudget;
  readonly environment: EngineStatus['environment'];
  readonly version: string;
  readonly seals: Pick<Seals, 'lineFor'>;
  /** Called after an operation that may change what the library says. */
  readonly pagesChanged: () => void;
  readonly titles: SessionTitles;
  readonly ui: Ui;
  readonly ledger: Pick<CostLedger, 'days' | 'conversation'>;
  readonly undo: Undo;
  readonly removals: Removals;
  readonly health: Health;
  readonly pausing: PauseSwitch;
  readonly quota: Budget['limits'];
  /** Answers that are not complete, and the time of the newest request. */
  readonly activity: () => Activity;
}

/** The dashboard's listener. */
export interface Ui {
  /**
   * Listens where it does not yet. `url` signs a browser in, once.
   * @throws CometError `not_allowed`, `port_in_use`, `unsafe_file`
   */
  open(): Promise<{ readonly url: string; readonly port: number /** Of `ui.port`. */; readonly wanted_port: number }>;
  /** An operation may have changed tasks or the library. */
  touch(): void;
  /** Without a token; null where nothing listens. */
  address(): string | null;
}

export interface OperationOf<I extends z.ZodType, O> {
  readonly input: I;
  readonly run: (services: EngineServices, input: z.infer<I>) => O | Promise<O>;
}

type InputOf<I> = I extends z.ZodType ? I : I extends z.ZodRawShape ? z.ZodObject<I, z.core.$strict> : never;

/** @param input  the schema of the body, or its fields where it has no others */
export function operation<I extends z.ZodType | z.ZodRawShape, O>(input: I, run: OperationOf<InputOf<I>, O>['run']) {
  return { input: input instanceof z.ZodType ? input : z.strictObject(input), run } as OperationOf<InputOf<I>, O>;
}

/** Field names are those of `status --json`. */
export interface EngineStatus extends MemoryStatus, Costs, ReturnType<typeof requestCounts> {
  readonly pid: number;
  readonly version: string;
  readonly paused: Pauses;
  readonly requests: Readonly<ProxyStats>;
  readonly recalls: RecallCounts;
  readonly budget: ModelBudget;
  /** Null where nothing is shared; absent in engines of earlier versions. */
  readonly share?: ShareReport | null;
  /** Variables of the shell that started the daemon which differ from the defaults and override `config.json`. */
  readonly environment: readonly string[];
}

/** Of memory's own model calls. */
export interface ModelBudget {
  /** Per day; 0 where none are made. */
  readonly daily_tokens: number;
  /** Per session; 0: no limit, or none are made. */
  readonly session_tokens: number;
  /** Sessions that took some within a day, newest first. */
  readonly sessions: readonly {
    readonly session_id: string;
    /** First prompt of the session, '' where it is not known. */
    readonly title?: string;
    readonly tokens: number;
    /** Rules write its memories now. */
    readonly spent: boolean;
  }[];
}
