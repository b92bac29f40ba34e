import { below, seedOf } from "../../core/random.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";

/*
 * What a VM asks for: of twenty 11 ask for nothing, 3 and 2 are in strict and other anti-affinity groups of five, 1 is in a strict affinity group
 * of four, 1 spreads, 1 asks for hosts of its account, 1 for a pool that its account may use. Besides, each account has twenty strict and twenty preferred ones,
 * which come first.
 */
export interface Kind {
  readonly of: number;
  readonly what: number | undefined;
}
export interface Asked {
  readonly client: PeerName;
  readonly kind: Kind;
  readonly document: JsonObject & { readonly vm: string; readonly memoryMiB: number; readonly cpus: number };
}
const kinds = [0, 0, 0, 1, 1, 2, 3, 4, 7];

export interface Mix {
  readonly kindOf: () => Kind;
  readonly request: (kind: Kind) => Asked;
  readonly clientOf: (kind: Kind) => PeerName;
  /** One of these kinds comes first, for each account twenty of each. */
  readonly first: () => readonly Kind[];
  readonly chance: { random: number };
}
/** @param group a group that the next request is in, the first time */
export function mixOf(
  accounts: number,
  pools: number,
  group: (client: PeerName, key: string, document: JsonObject) => void,
): Mix {
  const chance = { random: seedOf(19) };
  const pick = <T>(all: readonly T[]): T => all[below(chance, all.length)] as T;
  const groups = new Set<string>();
  // One text for all VMs of a cell, as a Placer has one for each connection.
  const cellOf = (of: number) => ({ cell: `k${of}`, client: peerName(`controller.k${of}`) });
  const cells = Array.from({ length: accounts }, (_, of) => cellOf(of));
  const all = cells.map((_, of) => Array.from({ length: 20 }, (_kind, at): Kind => ({ of, what: kinds[at] })));
  let serial = 0;
  const request = (kind: Kind): Asked => {
    serial += 1;
    const { of, what } = kind;
    const { cell, client } = cells[of] ?? cellOf(of);
    const within = (letter: string, size: number, sort: string): JsonObject => {
      const name = `${letter}${Math.floor(serial / (20 * size * accounts))}`;
      const uid = `${cell}-${name}`;
      if (!groups.has(uid)) group(client, `group/${uid}`, { uid, path: `${cell}/${name}`, name, kind: sort });
      groups.add(uid);
      return { groups: [name] };
    };
    const wishes: readonly (() => JsonObject)[] = [
      () => within("s", 5 / 3, "host anti-affinity"),
      () => within("n", 5 / 2, "non-strict host anti-affinity"),
      () => within("t", 4, "host affinity"),
      () => ({ spread: `w${Math.floor(serial / (20 * 5 * accounts))}` }),
      () => ({ groups: [`DedicatedGrp-a${of}`] }),
      () => ({ dedication: "strict" }),
      () => ({ dedication: "preferred" }),
      () => ({ pool: poolAt(of % pools) }),
    ];
    const vm = `v${serial}`;
    const document = {
      vm,
      path: `${cell}/${vm}`,
      cell,
      incarnation: 1,
      cpuSpeedMHz: serial % 7 === 0 && what === undefined ? 3000 : 0,
      memoryMiB: pick([2048, 4096, 8192, 16_384]),
      cpus: pick([1, 2, 4]),
      placement: what === undefined ? {} : (wishes[what]?.() ?? {}),
    };
    return { client, kind, document };
  };
  return {
    chance,
    kindOf: () => all[below(chance, accounts)]?.[below(chance, 20)] ?? { of: 0, what: undefined },
    request,
    clientOf: ({ of }) => (cells[of] ?? cellOf(of)).client,
    first: () => Array.from({ length: accounts * 40 }, (_, at) => ({ of: at % accounts, what: at % 80 < 40 ? 5 : 6 })),
  };
}

/** Two kinds of machines. */
export const machineAt = (
  at: number,
): { readonly memoryMiB: number; readonly cpus: number; readonly cpuSpeedMHz: number } => ({
  ...(at % 3 === 0 ? { memoryMiB: 524_288, cpus: 128 } : { memoryMiB: 262_144, cpus: 64 }),
  cpuSpeedMHz: at % 2 === 0 ? 2400 : 3000,
});
/** One host in twenty is in a pool, at most as many pools as accounts; each is for the accounts whose number, by the pools, is its own. */
export const poolsOf = (hosts: number, accounts: number): number =>
  Math.max(1, Math.min(accounts, Math.floor(hosts / 20)));
export const isPooled = (at: number): boolean => at % 20 === 5;
const poolAt = (number: number): string => `pool-${number}`;
/** A host that `isPooled`: its document at the Placer. */
export function pooled(host: string, at: number, accounts: number, pools: number): JsonObject {
  const number = Math.floor(at / 20) % pools;
  const authorised = Array.from({ length: accounts }, (_, of) => of).filter((of) => of % pools === number);
  const cell = `k${number}`;
  const pool = { uid: poolAt(number), cell, path: `${cell}/pool`, name: `n${at}`, enabled: true };
  return { host, flavor: "whole", tag: `t${at}`, pool: { ...pool, authorised: authorised.map(accountAt) } };
}
/** One host in ten is dedicated: its document at the Placer. */
export function dedicated(host: string, at: number, accounts: number): JsonObject {
  const to = { kind: "account", path: accountAt((at / 10) % accounts) };
  return { host, of: host, level: "host", to };
}
const accountAt = (at: number): string => `ROOT/d${at % 5}/a${at}`;
export const ownerOf = (at: number): JsonObject => ({ cell: `k${at}`, account: accountAt(at) });
