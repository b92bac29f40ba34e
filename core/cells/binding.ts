import type { CellBinding } from "../../model/cell/cell.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import type { CellServices } from "../documents/cells.ts";
import { type ServiceRole, servicePeer } from "../documents/service-roles.ts";

/**
 * Which Placer, which Storage Manager and which HA Manager decide for a cell, where there are several (decision 37). Chosen once,
 * when the cell is made: what a VM's place or a volume's lease is, only the one knows that gave it.
 */
export const firstServices: CellServices = { placer: 1, storageManager: 1 };
const kinds = ["placer", "storageManager", "haManager"] as const;
type Kind = (typeof kinds)[number];
const roles: Readonly<Record<Kind, ServiceRole>> = {
  placer: "placer",
  storageManager: "storage-manager",
  haManager: "ha-manager",
};
const names: Readonly<Record<Kind, string>> = {
  placer: "Placer",
  storageManager: "Storage Manager",
  haManager: "HA Manager",
};

/** `placer` for 1, `placer.2` for 2. */
export const servicePeerOf = (kind: Kind, number: number): PeerName =>
  servicePeer(roles[kind], number === 1 ? undefined : number);

/** The numbers of those that there are, ascending. */
export type Instances = Readonly<Record<Kind, readonly number[]>>;
export const firstInstances: Instances = { placer: [1], storageManager: [1], haManager: [1] };

/** From the names of all peers. */
export const instancesIn = (peers: readonly string[]): Instances => {
  const numbersOf = (role: string): readonly number[] =>
    peers
      .flatMap((peer) => {
        if (peer === role) return [1];
        const number = new RegExp(`^${role}\\.([1-9][0-9]{0,3})$`).exec(peer)?.[1];
        return number === undefined ? [] : [Number(number)];
      })
      .sort((a, b) => a - b);
  return {
    placer: numbersOf(roles.placer),
    storageManager: numbersOf(roles.storageManager),
    haManager: numbersOf(roles.haManager),
  };
};

/**
 * What a new cell is bound to: what it asks for, else what its parent has, else (`parent` null: a child of the root cell) the
 * one with the fewest cells; where none is there yet, the first, which a cloud begins with. The first HA Manager looks after the
 * root cell, and after others only as long as there is no further one (decision 91). The error is a sentence.
 *
 * @param others what all other cells are bound to, the root cell among them
 */
export function bind(
  asked: CellBinding | undefined,
  parent: CellServices | null,
  instances: Instances,
  others: readonly CellServices[],
): Result<CellServices, string> {
  const numbers: Record<Kind, number> = { ...firstServices, haManager: 1 };
  for (const kind of kinds) {
    const [wanted, there] = [asked?.[kind], instances[kind]];
    if (wanted !== undefined && !there.includes(wanted)) return fail(absent(kind, wanted, there));
    const number =
      wanted ?? ofParent(parent, kind) ?? fewest(forTenants(kind, there), (each) => countOf(others, kind, each));
    numbers[kind] = number ?? 1;
  }
  const { haManager, ...first } = numbers;
  return ok({ ...(haManager === 1 ? first : numbers), ...modeOf(asked) });
}

/** A child has its own, whatever its parent's is. */
const modeOf = ({ networkMode }: CellBinding = {}): Pick<CellBinding, "networkMode"> =>
  networkMode === undefined ? {} : { networkMode };

const ofParent = (parent: CellServices | null, kind: Kind): number | undefined =>
  parent === null ? undefined : (parent[kind] ?? 1);

/** The first HA Manager is the root controller's own part, and what it looks after is what all others rest on. */
const forTenants = (kind: Kind, there: readonly number[]): readonly number[] => {
  const further = there.filter((number) => number !== 1);
  return kind === "haManager" && further.length > 0 ? further : there;
};

/** The HA Manager with the fewest cells of those that take new ones; undefined: there is none. */
export const nextGuard = ({ haManager }: Instances, others: readonly CellServices[]): number | undefined =>
  fewest(forTenants("haManager", haManager), (each) => countOf(others, "haManager", each)) ?? undefined;

function absent(kind: Kind, number: number, there: readonly number[]): string {
  const all =
    there.length === 0 ? "there is none now" : `there ${there.length === 1 ? "is" : "are"} ${there.join(", ")}`;
  return `its x.services.${kind} asks for ${names[kind]} ${number}, which there is not: ${all}`;
}

const countOf = (all: readonly CellServices[], kind: Kind, number: number): number =>
  all.filter((each) => (each[kind] ?? 1) === number).length;

/** The first of those with the least; null: there is none. */
function fewest(numbers: readonly number[], count: (number: number) => number): number | null {
  let best: number | null = null;
  for (const each of numbers) if (best === null || count(each) < count(best)) best = each;
  return best;
}

/** For a document that names only what is not the first. */
export const otherThanFirst = (services: CellServices): CellBinding => ({
  ...Object.fromEntries(kinds.flatMap((kind) => ((services[kind] ?? 1) === 1 ? [] : [[kind, services[kind]]]))),
  ...modeOf(services),
});

/** The peers of a controller's options: absent where it is the first. */
export const boundPeers = ({
  placer = 1,
  storageManager = 1,
  haManager = 1,
}: CellBinding): { readonly [kind in Kind]?: PeerName } => ({
  ...(placer === 1 ? {} : { placer: servicePeerOf("placer", placer) }),
  ...(storageManager === 1 ? {} : { storageManager: servicePeerOf("storageManager", storageManager) }),
  ...(haManager === 1 ? {} : { haManager: servicePeerOf("haManager", haManager) }),
});
