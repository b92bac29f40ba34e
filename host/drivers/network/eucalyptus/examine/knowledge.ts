import type { Instance, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import type { PacketCheck } from "../../driver.ts";
import type { Deviation, LocalNetwork } from "../driver.ts";
import { ownPrefix } from "../plan/own.ts";
import type { LocalPlan, Self } from "../plan/plan.ts";

/** What a machine says a packet's way by. */
export interface InstanceKnowledge {
  /** The last that was offered: who is where. */
  readonly view: NetworkView;
  readonly self: Self;
  readonly plan: LocalPlan;
  readonly found: LocalNetwork;
  /** What in force is other than it was put in place. */
  readonly deviations: readonly Deviation[];
}

/** @param apart see `PacketCheck`; absent: nothing */
export const pass = (check: string, detail: string, apart?: string): PacketCheck => said(check, true, detail, apart);
export const stop = (check: string, detail: string, apart?: string): PacketCheck => said(check, false, detail, apart);
const said = (check: string, passes: boolean, detail: string, apart: string | undefined): PacketCheck => ({
  check,
  passes,
  detail,
  ...(apart === undefined ? {} : { apart }),
});

/** Chains of other cells, of groups and of instances: all cells are in one view, and what their rules say is not for who asks. */
export const foreignChains = (
  { securityGroups, instances }: NetworkView,
  { owner }: Pick<Instance, "owner">,
): ReadonlySet<string> =>
  new Set([
    ...securityGroups.flatMap((group) => (group.owner === owner ? [] : [group.id])),
    ...instances.flatMap((each) => (each.owner === owner ? [] : [`${ownPrefix}${each.id}`])),
  ]);
