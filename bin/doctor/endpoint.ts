import { z } from 'zod';
import type { Config } from '../../common/config.ts';
import { getMessage } from '../../common/errors.ts';
import { parseJson, trimEnd } from '../../common/text.ts';
import { probeDimensions } from '../../memory/embeddings/index.ts';
import { createKeyedRequest, fullModelName } from '../../memory/models/index.ts';
import { bad, type Check, good } from './index.ts';

const ANSWER_MS = 10_000;
const LIST_CHARS = 4_000_000;
const ModelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });
const NO_KEY = 'set openai.keyEnv or openai.keyCommand; the daemon must be started where the variable is set';

/** Whether the endpoint of `llm: openai` has a key, answers, and knows the models. Asks only for its list: no tokens. */
export async function checkEndpoint(openai: Config['openai'], env: NodeJS.ProcessEnv): Promise<Check> {
  const { host } = new URL(openai.baseUrl);
  const request = { url: `${trimEnd(openai.baseUrl, '/')}/models`, timeoutMs: ANSWER_MS };
  const reply = await createKeyedRequest({ ...openai, env }, LIST_CHARS)(request, new AbortController().signal);
  if (reply.how === 'keyless') return bad('endpoint', reply.detail, NO_KEY);
  if (reply.how === 'answered') return judged(openai, host, reply);
  const why = 'code' in reply ? reply.code : reply.how;
  return bad('endpoint', `${host} does not answer (${why})`, 'start it, or correct openai.baseUrl');
}

function judged(openai: Config['openai'], host: string, { status, body }: { status: number; body: string }): Check {
  if (status === 401 || status === 403) return bad('endpoint', `${host} refuses the key (status ${status})`, NO_KEY);
  const names = [openai.model, openai.sensorModel].filter((name) => name !== '');
  const wanted = names.map((name) => fullModelName(name, openai.baseUrl));
  const list = ModelList.safeParse(status === 200 ? parseJson(body) : null);
  // Not every endpoint lists its models, and some list others than they serve under that name.
  if (!list.success) return good('endpoint', `${host} answers; it does not list its models`);
  const models = list.data.data.map(({ id }) => id);
  const unknown = wanted.filter((name) => !models.some((each) => each === name || each === `${name}:latest`));
  if (unknown.length === 0) return good('endpoint', `${host} answers and has ${wanted.join(' and ')}`);
  const some = models.length === 0 ? 'none at all' : models.slice(0, 5).join(', ');
  const detail = `${host} answers, but has no ${unknown.join(' and no ')}; it has ${some}`;
  return bad('endpoint', detail, 'set openai.model (and openai.sensorModel) to a model that it has');
}

/** An endpoint is asked for one vector of one word. */
export async function checkEmbedder({ embedder, embedding }: Config, env: NodeJS.ProcessEnv): Promise<Check> {
  if (embedder !== 'endpoint') return good('embedder', embedder);
  const options = { ...embedding, timeoutMs: ANSWER_MS, env, redact: (text: string) => text };
  return await probeDimensions(options).then(
    (dimensions) => good('embedder', `${embedding.model} at ${new URL(embedding.baseUrl).host}, ${dimensions} numbers`),
    (e) => bad('embedder', getMessage(e), 'start it, or correct embedding.baseUrl, model, keyEnv or keyCommand'),
  );
}
