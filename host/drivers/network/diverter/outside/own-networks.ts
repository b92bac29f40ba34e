import type { Cidr, Ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { Outside } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import type { Generations } from "../rules/generations.ts";
import { externalInForce, putNetworks } from "./in-force.ts";
import { networksOf } from "./networks.ts";

/**
 * Which networks are the installation's own, and which of them are known outside. The pools of external addresses change as the
 * root cell declares them; until this process hears of them, those go on that an earlier one left in force.
 */
export interface OwnNetworks {
  /** @param external pools; absent: those of the configuration */
  isInForce(external: readonly Cidr[] | undefined): boolean;
  tell(external: readonly Cidr[] | undefined): void;
  isExternal(address: Ipv4): boolean;
}
type Configured = Pick<Outside, "external" | "inside"> & Partial<Outside>;

/** @param configured null: nothing is known, and nothing is the installation's own */
export function openNetworks(
  dataplane: Dataplane,
  generations: Generations,
  configured: Configured | null,
): OwnNetworks {
  if (configured === null) {
    putNetworks(dataplane, []);
    return { isInForce: () => true, tell: () => undefined, isExternal: () => false };
  }
  const before = externalInForce(dataplane);
  let now: readonly Cidr[] = before.length === 0 ? configured.external : before;
  let { networks, isExternal } = networksOf({ ...configured, external: now });
  putNetworks(dataplane, networks);
  const isInForce = (external: readonly Cidr[] = configured.external): boolean =>
    now.length === external.length && external.every((each) => now.includes(each));
  return {
    isInForce,
    tell: (external = configured.external) => {
      if (isInForce(external)) return;
      now = external;
      ({ networks, isExternal } = networksOf({ ...configured, external: now }));
      putNetworks(dataplane, networks);
      // Flows were admitted by what their ends were then.
      generations.renewAll();
    },
    isExternal: (address) => isExternal(address),
  };
}
