import path from 'node:path';
import type { Config } from '../../common/config.ts';
import { getReason, type Problem } from '../../common/errors.ts';
import { localDay } from '../../common/text.ts';
import {
  ASSUMED_MEMORY,
  createRequestReader,
  DEFAULT_TTL,
  findModelTraits,
  type PastConversation,
  type SimulatedCost,
  type SimulatedRequest,
  simulateConversation,
  sumRequests,
} from '../../proxy/transcript/index.ts';
import { cutRule } from '../cut-config.ts';
import { MOST_BYTES, readTranscriptLines, type TranscriptFile, transcriptFiles } from './files.ts';

/** The conversations of one session, itself first, without requests that an earlier file has. */
export type PastSession = readonly PastConversation[];

/** Copies of a session, made to fork or to resume it, repeat its answers. */
export function createSessionReader() {
  const seen = new Set<string>();
  return {
    /** @throws what reading the files throws */
    async read(file: Pick<TranscriptFile, 'file' | 'agents'>): Promise<PastSession> {
      const reader = createRequestReader(path.basename(file.file, '.jsonl'));
      await readTranscriptLines(file, reader.line);
      const own = reader.conversations().map(({ requests, ...conversation }) => {
        return { ...conversation, requests: requests.filter(({ answerId }) => !seen.has(answerId)) };
      });
      for (const { answerId } of own.flatMap(({ requests }) => requests)) if (answerId !== '') seen.add(answerId);
      return own.filter(({ requests }) => requests.length > 0);
    },
  };
}

interface SimulationInput {
  /** Claude Code's folder of transcripts. */
  readonly projects: string;
  /** Of requests. */
  readonly sinceMs: number;
  readonly config: Pick<Config, 'trim' | 'inject'>;
  /** Bytes, and requests so far. */
  readonly onProgress: (progress: { done: number; total: number; requests: number }) => void;
}

export type SimulatedSavings = Awaited<ReturnType<typeof simulateSavings>>;

interface SessionCost extends SimulatedCost {
  readonly session_id: string;
  readonly at: string;
  readonly project_dir: string;
}

/** What memory would have saved on past sessions. Reads transcripts only; writes nothing. */
export async function simulateSavings({ projects, sinceMs, config, onProgress }: SimulationInput) {
  const files = (await transcriptFiles(projects)).filter(({ changedAtMs }) => changedAtMs >= sinceMs);
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const rule = { cut: cutRule(config.trim), plan: config.inject };
  const reader = createSessionReader();
  const sessions: SessionCost[] = [];
  const agents: SimulatedRequest[] = [];
  const problems: Problem[] = [];
  const features = { models: new Set<string>(), ttls: new Set<string>(), rewinds: 0, compactions: 0 };
  let done = 0;
  for (const file of files) {
    try {
      if (file.bytes > MOST_BYTES) throw new Error('larger than 256 MB, which no conversation is');
      for (const conversation of await reader.read(file)) {
        const played = simulateConversation(conversation, rule).filter(({ atMs }) => atMs >= sinceMs);
        const [first] = played;
        if (first === undefined) continue;
        for (const { model } of played) features.models.add(model);
        for (const { ttl } of conversation.requests) features.ttls.add(ttl ?? '');
        features.rewinds += conversation.rewinds;
        features.compactions += conversation.compactions;
        if (conversation.agentId !== '') agents.push(...played);
        else {
          const { sessionId: session_id, projectDir: project_dir } = conversation;
          sessions.push({ session_id, at: new Date(first.atMs).toISOString(), project_dir, ...sumRequests(played) });
        }
      }
    } catch (error) {
      problems.push({ file: file.file, message: getReason(error) });
    }
    done += file.bytes;
    onProgress({ done, total, requests: sessions.reduce((sum, { requests }) => sum + requests, agents.length) });
  }
  const report = getReport(sessions, agents, features);
  return { kind: 'simulation', transcripts: files.length, ...report, sessions, problems } as const;
}

const LENGTHS = [20, 60, 150, Number.POSITIVE_INFINITY];

function getReport(
  sessions: readonly SessionCost[],
  agents: readonly SimulatedRequest[],
  { models, ttls, ...counts }: { models: Set<string>; ttls: Set<string>; rewinds: number; compactions: number },
) {
  const by_length = LENGTHS.map((most, at) => {
    const least = LENGTHS[at - 1] ?? 0;
    const name = Number.isFinite(most) ? `${least + 1} to ${most}` : `over ${least}`;
    return { length: name, ...summarize(sessions.filter((each) => each.requests > least && each.requests <= most)) };
  });
  const days = sessions.map(({ at }) => localDay(at)).sort();
  const subagents = sumRequests(agents);
  return {
    ...{ from: days[0] ?? null, to: days.at(-1) ?? null, ...counts },
    all: summarize(sessions),
    by_length,
    /** Sent unchanged; not in the other figures. */
    subagents: { requests: subagents.requests, ...subagents.direct },
    assumptions: {
      models: [...models].sort().map((model) => {
        const { family, source, inputPrice: usd_per_million } = findModelTraits(model);
        return { model, priced_as: family, usd_per_million, source };
      }),
      cache: { recorded: [...ttls].filter((ttl) => ttl !== '').sort(), otherwise: DEFAULT_TTL },
      added_tokens: ASSUMED_MEMORY,
    },
  };
}

function summarize(sessions: readonly SessionCost[]) {
  const sum = (value: (session: SessionCost) => number): number =>
    sessions.reduce((total, session) => total + value(session), 0);
  const ratios = sessions.map(({ direct, sent }) => (direct.usd === 0 ? 1 : sent.usd / direct.usd));
  ratios.sort((a, b) => a - b);
  const at = (share: number): number | null => ratios[Math.floor((ratios.length - 1) * share)] ?? null;
  const [direct_usd, sent_usd] = [sum(({ direct }) => direct.usd), sum(({ sent }) => sent.usd)];
  return {
    sessions: sessions.length,
    requests: sum(({ requests }) => requests),
    cuts: sum(({ cuts }) => cuts),
    original: sum(({ direct }) => direct.tokens),
    sent: sum(({ sent }) => sent.tokens),
    direct_usd,
    sent_usd,
    /** Cost of all requests together, direct 1. */
    cost: direct_usd === 0 ? null : sent_usd / direct_usd,
    ...{ best: at(0), median: at(0.5), worst: at(1) },
    over_direct: ratios.filter((ratio) => ratio > 1).length,
    over_two_percent: ratios.filter((ratio) => ratio > 1.02).length,
    peak_over_150k: {
      direct: sessions.filter(({ direct }) => direct.peak > 150_000).length,
      sent: sessions.filter(({ sent }) => sent.peak > 150_000).length,
    },
  };
}
