import { type HostName, hostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import { deathOf } from "../../presence/group/deaths.ts";
import { fractionOf } from "../../random.ts";
import type { HaState } from "../state.ts";
import type { Executors } from "./power-state.ts";

/*
 * Executors: the hosts that carry out an order to another one's management controller. One may be lost in the same moment as the host that it is
 * to ask about, so two are named, which are away from it and not beside one another, and who has not answered is named last the next time.
 */
const executorCount = 2;
/** Those that are named next to a host are lost with it, as a rack is. */
const nearShare = 1 / 8;
const ranks = { answered: 0, away: 1, near: 2, doubted: 3, silent: 4 } as const;

const nameOf = (peer: PeerName): HostName => hostName(peer.slice("host.".length));
const none: Executors = { named: [], answered: null, silent: new Set() };

/** Two other hosts that are heard, in the order in which they are asked; fewer where there are no more. */
export function executorsFor(state: HaState, host: HostName): readonly PeerName[] {
  const { options, reachable, deaths, suspicions, power } = state;
  const { hosts } = options;
  const { answered: before, silent } = power.executors.get(host) ?? none;
  // An order to cut is given once: one that is lost itself by now would carry nothing out.
  const answered = before === null || suspicions.has(nameOf(before)) ? null : before;
  const [own, near] = [hosts.indexOf(hostPeer(host)), Math.floor(hosts.length * nearShare)];
  const ranked = hosts.flatMap((peer, index) => {
    const name = nameOf(peer);
    if (index === own || reachable.get(peer) !== true || deathOf(deaths, name) !== null) return [];
    const behind = (index - own + hosts.length) % hosts.length;
    const isNear = Math.min(behind, hosts.length - behind) <= near;
    const place = suspicions.has(name) ? ranks.doubted : isNear ? ranks.near : ranks.away;
    const rank = silent.has(peer) ? ranks.silent : peer === answered ? ranks.answered : place;
    return [{ peer, rank, chance: fractionOf(`${host} ${peer}`) }];
  });
  ranked.sort((one, other) => one.rank - other.rank || one.chance - other.chance);
  return ranked.slice(0, executorCount).map(({ peer }) => peer);
}

export function noteNamed({ power }: HaState, host: HostName, named: readonly PeerName[]): void {
  const before = power.executors.get(host) ?? none;
  // Where none is left but who was silent before, all have another turn.
  const isAnew = named[0] !== undefined && before.silent.has(named[0]);
  power.executors.set(host, { ...before, named, silent: isAnew ? new Set() : before.silent });
}

/** How a reading came about that was no help: of another machine; on by whom had the order to cut. Who says so may lie, or ask somewhere else. */
export type NoHelp = "other" | "uncut" | null;
/** What was read by that one of those who were named; null: none of them could say. */
export function noteAnswered({ power }: HaState, host: HostName, by: PeerName | null, why: NoHelp = null): void {
  const { named, silent } = power.executors.get(host) ?? none;
  const helps = why === null;
  const before = by === null ? named : named.slice(0, Math.max(0, named.indexOf(by) + (helps ? 0 : 1)));
  const answered = helps ? by : null;
  const now = new Set([...silent, ...before].filter((peer) => peer !== answered));
  power.executors.set(host, { named, answered, silent: now });
}
