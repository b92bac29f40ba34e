import type { AllocatedAddress, InstanceAllocation } from "../../../../../model/eucalyptus/allocation/allocation.ts";
import type { Instance, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { NetworkServiceState } from "../../service/network-service.ts";
import { tapOf } from "../plan/guard.ts";
import { lookUp } from "../plan/lookup.ts";
import type { Self } from "../plan/plan.ts";

/* What a machine says became of its addresses, so that no address that may be in place is ever without a name. Pure. */

/** What a view does not have any more stays named until a view is in place whole: nobody else knows that it may still be there. */
export function withLeft(
  now: readonly InstanceAllocation[],
  before: readonly InstanceAllocation[],
): readonly InstanceAllocation[] {
  const kept = (said: AllocatedAddress): AllocatedAddress => ({
    address: said.address,
    state: "failed" as const,
    reason: "it is to go, and has not gone yet",
  });
  return withNames(
    now,
    before.map(({ id, privateIp, publicIp }) => ({
      id,
      ...(privateIp === undefined ? {} : { privateIp: kept(privateIp) }),
      ...(publicIp === undefined ? {} : { publicIp: kept(publicIp) }),
    })),
  );
}
export const namesOf = (instances: readonly InstanceAllocation[]): readonly string[] =>
  instances.flatMap(({ privateIp, publicIp }) => [
    ...(privateIp === undefined ? [] : [`private ${privateIp.address}`]),
    ...(publicIp === undefined ? [] : [`public ${publicIp.address}`]),
  ]);
/** And addresses of others that are not named yet: another one of the same instance is in a second entry, after its first. */
export function withNames(
  named: readonly InstanceAllocation[],
  others: readonly InstanceAllocation[],
): readonly InstanceAllocation[] {
  const names = new Set(namesOf(named));
  const all = [...named];
  for (const { id, privateIp, publicIp } of others) {
    const isPrivate = privateIp !== undefined && !names.has(`private ${privateIp.address}`);
    const isPublic = publicIp !== undefined && !names.has(`public ${publicIp.address}`);
    if (!isPrivate && !isPublic) continue;
    const more = { ...(isPrivate ? { privateIp } : {}), ...(isPublic ? { publicIp } : {}) };
    const at = all.findIndex(
      (each) =>
        each.id === id && !(isPrivate && each.privateIp !== undefined) && !(isPublic && each.publicIp !== undefined),
    );
    const known = all[at];
    if (known === undefined) all.push({ id, ...more });
    else all[at] = { ...known, ...more };
  }
  return all;
}

/** Why the view is not in force whole, as one sentence; null: it is. */
export function reasonOf({ missing, failed, refused }: NetworkServiceState): string | null {
  const whys = [...missing, ...Object.values(failed), ...(refused === null ? [] : [refused])];
  return whys.length === 0 ? null : whys.join("; ");
}

/** Why what the view in force says of an instance is not in place; null: it is. What is of one tap or group is nothing of others. */
export function reasonsOf(
  state: NetworkServiceState,
): (instance: Pick<Instance, "id" | "securityGroups">) => string | null {
  const { partly = {} } = state;
  const failed = Object.fromEntries(Object.entries(state.failed).filter(([step]) => !Object.hasOwn(partly, step)));
  const all = reasonOf({ ...state, failed, refused: null });
  const parts = new Map(Object.values(partly).flatMap((each) => [...each]));
  return ({ id, securityGroups }) =>
    all ?? parts.get([tapOf({ id }), ...securityGroups].find((name) => parts.has(name)) ?? "") ?? null;
}

/** Those about an instance or its groups and nobody else's: who asks may be its tenant. A rule of its own names whom it says. */
export function warningsOf(
  { warnings = [] }: Pick<NetworkServiceState, "warnings">,
  { id, securityGroups }: Pick<Instance, "id" | "securityGroups">,
): readonly string[] {
  const names = new Set([id, ...securityGroups]);
  return warnings.filter((warning) => {
    const [first, ...others] = warning.match(/\b(?:sg|i)-[\w-]+/g) ?? [];
    if (first === undefined || !names.has(first)) return false;
    return warning.startsWith("a rule of ") || others.every((name) => names.has(name));
  });
}

/** What an instance's own MAC says at its tap, if it is an address that a machine may have. */
export function learntOf({ instances }: NetworkView, heard: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map(
    instances.flatMap(({ id }) => {
      const said = heard.get(tapOf({ id }));
      return said === undefined || !isUnicast(said) ? [] : [[id, said] as const];
    }),
  );
}
/** Not of a link alone, as who has been given none takes it. */
const isUnicast = (address: number): boolean => {
  const [first, second] = [address >>> 24, (address >>> 16) & 0xff];
  return first > 0 && first < 224 && first !== 127 && !(first === 169 && second === 254);
};

/**
 * Of the instances of this machine; on a network host, of its cluster. A refused view leaves the last good one in force.
 * @param learnt addresses that instances say they have, by id: a view has none of these
 */
export function allocationOf(
  view: NetworkView,
  self: Self,
  state: NetworkServiceState,
  learnt: ReadonlyMap<string, number> = new Map(),
): readonly InstanceAllocation[] {
  const lookup = lookUp(view, self.address);
  const nodes = self.peer === "network" ? (lookup.cluster?.nodes ?? []) : lookup.node === null ? [] : [lookup.node];
  const reasonFor = reasonsOf(state);
  const become = (address: number, why: string | null): AllocatedAddress =>
    state.mode === null
      ? { address, state: "pending" }
      : why === null
        ? { address, state: "assigned" }
        : { address, state: "failed", reason: why };
  return nodes
    .flatMap((node) => lookup.instancesOf(node))
    .map(({ id, publicIp, securityGroups, ...instance }) => {
      const privateIp = learnt.get(id) ?? instance.privateIp;
      const why = reasonFor({ id, securityGroups });
      return {
        id,
        ...(privateIp === undefined ? {} : { privateIp: become(privateIp, why) }),
        ...(publicIp === undefined ? {} : { publicIp: become(publicIp, why) }),
      };
    });
}
