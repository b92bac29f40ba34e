import { type LocalPlan, localDefaults } from "../../host/drivers/network/eucalyptus/plan/plan.ts";
import { planFor } from "../../host/drivers/network/eucalyptus/planners.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { buildView } from "../../model/eucalyptus/view/build-view.ts";
import type { IngressRule, NetworkView } from "../../model/eucalyptus/view/network-view.ts";

/** Views of EDGE of any size, for benches: instances of as many groups, spread over nodes. */
export interface Size {
  readonly instances: number;
  readonly groups: number;
  /** Of each group. */
  readonly rules: number;
  readonly nodes: number;
}
/** A host with 1,000 rules. */
export const thousandRules: Size = { instances: 200, groups: 100, rules: 10, nodes: 20 };
/** The largest of which there is a figure to beat. */
export const large: Size = { instances: 10_000, groups: 1000, rules: 3, nodes: 100 };

const base = 0x0a000000;
const subnet = { name: "s", subnet: base, netmask: 0xffff0000, gateway: base + 1 };
const configuration: NetworkConfiguration = {
  mode: "EDGE",
  publicIps: [{ first: 0xc6120000, last: 0xc613ffff }],
  subnets: [subnet],
  clusters: [{ name: "one", subnet: { name: "s" }, privateIps: [{ first: base + 2, last: base + 60_000 }] }],
};
export const tcpRule = (fromPort: number, cidr: string): IngressRule => {
  return { protocol: 6, fromPort, toPort: fromPort, icmpType: 0, icmpCode: 0, cidr };
};
export const id = (kind: "i" | "sg", number: number): string => `${kind}-${number.toString(16).padStart(8, "0")}`;
const octet = (value: number): string => value.toString(16).padStart(2, "0").toUpperCase();
export const macOf = (number: number): string => `D0:0D:00:00:${octet(number >> 8)}:${octet(number & 255)}`;

/** @param port of the first rule of the first group */
export function viewOf({ instances, groups, rules, nodes }: Size, port: number): NetworkView {
  const view = buildView(configuration, {
    clusters: [{ name: "one", ccIp: 1, nodes: Array.from({ length: nodes }, (_, node) => `n${node}`) }],
    clcIp: base + 9,
    dnsDefault: [base + 9],
    instances: Array.from({ length: instances }, (_, number) => ({
      id: id("i", number),
      cluster: "one",
      node: `n${number % nodes}`,
      mac: macOf(number),
      privateIp: base + 2 + number,
      securityGroups: [id("sg", number % groups)],
    })),
    securityGroups: Array.from({ length: groups }, (_, group) => ({
      id: id("sg", group),
      owner: "o",
      egress: [],
      ingress: Array.from({ length: rules }, (_, number) =>
        tcpRule(group === 0 && number === 0 ? port : 1000 + number, `192.0.${group % 256}.0/24`),
      ),
    })),
  });
  if (view === null) throw new Error("the mode EDGE has no view");
  return view;
}
/** What the first node has to have by a view. */
export const planOfFirst = (view: NetworkView): LocalPlan =>
  planFor(view, { address: "n0", peer: "node" }, { ...localDefaults, bridgeMac: "02:00:00:00:00:FE" });
export const planned = (size: Size, port: number): LocalPlan => planOfFirst(viewOf(size, port));
