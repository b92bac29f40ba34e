import type { PeerName } from "../../model/cell/identifiers.ts";
import { elementsOf } from "../../model/contract/follow/rows.ts";
import type {
  CellCounters,
  HostCounters,
  InterfaceCounted,
  MachineCounted,
  RuleCounted,
} from "../../model/contract/operator/numbers/counters.ts";
import type { Json } from "../../model/json/json.ts";

/*
 * What hosts count of one cell. Each host says what it counts of all cells, and is asked for that at most each 2 s, however many people look at
 * however many cells. What a person is told is of elements that he may read in the cell's model: a host may say whatever it wants of others.
 */
const keptMs = 2_000;

export interface Hosts {
  /** Rejects when it does not answer, or not with what can be read. */
  ask(host: PeerName): Promise<HostCounters>;
  list(): Promise<readonly PeerName[]>;
  nowMs(): number;
}
/** By host, what it said last; null: nothing. */
export type Said = ReadonlyMap<PeerName, HostCounters | null>;

interface Kept {
  readonly atMs: number;
  readonly said: Promise<HostCounters | null>;
  /** Undefined: it is being asked. */
  now: HostCounters | null | undefined;
  /** It did not say when it was asked before: everybody else's numbers do not wait for it once more. */
  readonly wasSilent: boolean;
}
export function createHostCounters(hosts: Hosts): () => Promise<Said> {
  const kept = new Map<PeerName, Kept>();
  const begin = (name: PeerName, wasSilent: boolean): Kept => {
    const said = hosts.ask(name).catch(() => null);
    const begun: Kept = { atMs: hosts.nowMs(), said, now: undefined, wasSilent };
    kept.set(name, begun);
    void said.then((counters) => {
      begun.now = counters;
    });
    return begun;
  };
  return async () => {
    const all = await hosts.list();
    const names = new Set(all);
    for (const name of kept.keys()) if (!names.has(name)) kept.delete(name);
    const answers = all.map(async (name): Promise<readonly [PeerName, HostCounters | null]> => {
      const before = kept.get(name);
      const isOfNow = before !== undefined && (before.now === undefined || hosts.nowMs() - before.atMs < keptMs);
      const { now, said, wasSilent } = isOfNow ? before : begin(name, before?.now === null);
      return [name, now === undefined && wasSilent ? null : await said];
    });
    return new Map(await Promise.all(answers));
  };
}

/**
 * The sums of one cell.
 *
 * @param document its model with `$state`, as whoever asks may read it
 * @param isOperator he is told which hosts did not say
 */
export function countersOf(said: Said, { cell, document, isOperator }: CounterQuestion): CellCounters {
  const shown = new Set(elementsOf(document, "").map(({ path }) => path));
  const rules = new Map<string, RuleCounted>();
  const interfaces = new Map<string, InterfaceCounted>();
  const machines = new Map<string, MachineCounted>();
  const isAsked = (each: { readonly cell: string; readonly path: string }): boolean =>
    each.cell === cell && shown.has(each.path);
  for (const host of said.values()) {
    for (const { path, packets, bytes } of host?.rules.filter(isAsked) ?? []) {
      const before = rules.get(path);
      rules.set(path, { path, packets: packets + (before?.packets ?? 0), bytes: bytes + (before?.bytes ?? 0) });
    }
    for (const { path, sent, received, drops } of host?.interfaces.filter(isAsked) ?? []) {
      const before = interfaces.get(path);
      interfaces.set(path, {
        path,
        sent: sum(before?.sent, sent),
        received: sum(before?.received, received),
        drops: sums(before?.drops ?? {}, drops),
      });
    }
    for (const { path, diskBytes } of host?.machines.filter(isAsked) ?? [])
      machines.set(path, { path, diskBytes: diskBytes + (machines.get(path)?.diskBytes ?? 0) });
  }
  const silent = [...said].flatMap(([peer, each]) => (each === null ? [peer.slice("host.".length)] : []));
  return {
    rules: sorted(rules),
    interfaces: sorted(interfaces),
    machines: sorted(machines),
    missing: silent.length,
    ...(isOperator && silent.length > 0 ? { silent } : {}),
  };
}
export interface CounterQuestion {
  readonly cell: string;
  readonly document: Json;
  readonly isOperator: boolean;
}

type Both = InterfaceCounted["sent"];
const sum = (one: Both | undefined, other: Both): Both => ({
  packets: (one?.packets ?? 0) + other.packets,
  bytes: (one?.bytes ?? 0) + other.bytes,
});
function sums(one: InterfaceCounted["drops"], other: InterfaceCounted["drops"]): InterfaceCounted["drops"] {
  const all: Record<string, number> = { ...one };
  for (const [reason, count] of Object.entries(other)) all[reason] = (all[reason] ?? 0) + count;
  return all;
}
const sorted = <T extends { readonly path: string }>(all: ReadonlyMap<string, T>): readonly T[] =>
  [...all.values()].sort((one, other) => (one.path < other.path ? -1 : 1));
