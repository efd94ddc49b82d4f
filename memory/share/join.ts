import { CometError } from '../../common/errors.ts';
import { parseJson } from '../../common/text.ts';
import type { Bus } from './bus.ts';
import type { ShareScope } from './filter.ts';
import type { Membership, ShareState } from './parts.ts';
import { type Card, MACHINE_ID } from './row.ts';
import { sealingKey, unseal } from './seal.ts';
import { checkCard, REFUSALS } from './state.ts';

export interface JoinRequest {
  readonly url: string;
  /** Null: that of the machines that are there. */
  readonly scope: ShareScope | null;
  /** Null: those that the machines there share. */
  readonly projects: readonly string[] | null;
  readonly name: string;
}

/** Valid cards of other machines. */
export async function getCards(bus: Bus, own: string): Promise<Card[]> {
  const cards: Card[] = [];
  for (const machine of await bus.machines()) {
    const [row] = machine === own || !MACHINE_ID.test(machine) ? [] : await bus.read(machine, 0, 1);
    const card = row === undefined ? 'invalid' : checkCard(machine, row, null, null);
    if (typeof card !== 'string') cards.push(card);
  }
  return cards;
}

/**
 * What a machine published can be removed with its key alone, which another membership would replace.
 * @throws CometError `usage`
 */
export function checkHeld(held: Membership, { url, scope, name }: JoinRequest): void {
  if (held.url === '' || (held.url === url && held.name === name && held.scope === (scope ?? held.scope))) return;
  const here = `this machine shares over ${held.url} as ${held.name} (${held.scope})`;
  throw new CometError('usage', `${here}; first take that back: comet-cc share leave`);
}

/** @param isFirst  whether nothing may be there yet @throws CometError `usage` */
export async function checkMachines(
  { url, scope, projects, name }: JoinRequest,
  cards: readonly Card[],
  isFirst: boolean,
  passphrase: string | null,
) {
  const [first] = cards;
  const names = cards.map((card) => card.name).join(', ');
  const isMixed = new Set(cards.map((card) => card.scope)).size > 1;
  const isSealed = cards.some(({ salt }) => salt !== null);
  const isOpen = cards.some(({ salt }) => salt === null);
  const obstacles = [
    [isFirst && first, `${names} shares there; use: comet-cc share join ${url}`],
    [!isFirst && !first, `no machine shares there; on the first one: comet-cc share init ${url} --scope me|team`],
    [isMixed, 'machines of both scopes share there; choose another address'],
    [first && first.scope !== (scope ?? first.scope), `the machines there share with scope ${first?.scope}`],
    [isSealed && passphrase === null, 'memory is encrypted there: set COMET_CC_SHARE_PASSPHRASE to its passphrase'],
    [isOpen && passphrase !== null, 'memory is not encrypted there: join without a passphrase, or elsewhere'],
  ] as const;
  const obstacle = obstacles.find(([applies]) => applies);
  if (obstacle !== undefined) throw new CometError('usage', obstacle[1]);
  const theirs = (await Promise.all(cards.map((card) => getProjects(card, passphrase)))).flat();
  return { url, name, scope: first?.scope ?? scope ?? 'me', projects: projects ?? [...new Set(theirs)].sort() };
}

/** @throws CometError `usage` for another passphrase */
async function getProjects({ salt, projects }: Card, passphrase: string | null): Promise<string[]> {
  const text = salt === null ? projects : unseal(projects, await sealingKey(passphrase ?? '', salt));
  if (text === null) throw new CometError('usage', 'the passphrase is another one than that of the machines there');
  const read = parseJson(text);
  return Array.isArray(read) ? read.filter((each) => typeof each === 'string') : [];
}

export function getMachines({ peers, refused, left }: ShareState, trusted: readonly string[]) {
  const reasons: Readonly<Record<string, string>> = REFUSALS;
  const ids = Object.keys({ ...peers, ...refused }).filter((machine) => !left.includes(machine));
  return ids.map((machine) => ({
    machine,
    name: peers[machine]?.name ?? '',
    read: peers[machine]?.head.sequence ?? 0,
    trusted: trusted.includes(machine),
    refused: reasons[refused[machine] ?? ''] ?? '',
  }));
}
