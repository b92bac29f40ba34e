import { buildView } from "../../../../../model/eucalyptus/view/build-view.ts";
import type { IngressRule } from "../../../../../model/eucalyptus/view/network-view.ts";
import { type LocalConfiguration, type LocalPlan, localDefaults } from "../plan/plan.ts";
import { planFor } from "../planners.ts";

/* Views of EDGE that are made of a few words, for one node of two. */

const base = 0x0a320000;
export const addressOf = (number: number): string => `10.50.0.${10 + number}`;
export const idOf = (kind: "i" | "sg", number: number): string => `${kind}-${number.toString(16).padStart(8, "0")}`;
export const macOf = (number: number): string => `d0:0d:00:00:00:${number.toString(16).padStart(2, "0")}`;
export const tapOf = (number: number): string => `vn_${idOf("i", number)}`;
export const gateway = "10.50.0.1";
export const ruleOf = (part: Partial<IngressRule>): IngressRule => ({
  protocol: 6,
  fromPort: 0,
  toPort: 0,
  icmpType: 0,
  icmpCode: 0,
  ...part,
});

export interface InstanceOfSite {
  readonly groups: readonly number[];
  /** Elsewhere where it says nothing. */
  readonly here?: true;
  /** The last byte of 198.18.0.0/24. */
  readonly elastic?: number;
}
export const elasticOf = (last: number): string => `198.18.0.${last}`;
/** @param instances by their numbers @param ingress by the number of a group */
export function edgePlan(
  instances: readonly InstanceOfSite[],
  ingress: ReadonlyMap<number, readonly IngressRule[]>,
  local: Partial<LocalConfiguration> = {},
): LocalPlan {
  const [here, elsewhere] = ["10.111.5.4", "10.111.5.5"] as const;
  const groups = [...new Set(instances.flatMap((each) => each.groups))].sort((one, other) => one - other);
  const view = buildView(
    {
      mode: "EDGE",
      publicIps: [{ first: 0xc6120000, last: 0xc61200ff }],
      subnets: [{ name: "s", subnet: base, netmask: 0xffffff00, gateway: base + 1 }],
      clusters: [{ name: "one", subnet: { name: "s" }, privateIps: [{ first: base + 2, last: base + 250 }] }],
    },
    {
      clusters: [{ name: "one", ccIp: 0x0a6f0501, nodes: [here, elsewhere] }],
      clcIp: 0x0a6f0509,
      dnsDefault: [0xa9fea9fd],
      instances: instances.map((each, number) => ({
        id: idOf("i", number),
        cluster: "one",
        node: each.here === true ? here : elsewhere,
        mac: macOf(number),
        privateIp: base + 10 + number,
        ...(each.elastic === undefined ? {} : { publicIp: 0xc6120000 + each.elastic }),
        securityGroups: each.groups.map((group) => idOf("sg", group)),
      })),
      securityGroups: groups.map((group) => ({
        id: idOf("sg", group),
        owner: "o",
        egress: [],
        ingress: ingress.get(group) ?? [],
      })),
    },
  );
  if (view === null) throw new Error("EDGE has a view");
  const bridgeMac = "02:00:00:00:00:FE";
  return planFor(view, { address: here, peer: "node" }, { ...localDefaults, bridgeMac, ...local });
}
