import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4 } from "../../../model/cell/identifiers.ts";
import type { NetworkView } from "../../../model/eucalyptus/view/network-view.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { type MachineTruth, type Packet, Truth } from "../truth.ts";
import { sendByMode } from "./packets.ts";

const [h1, h2, h3] = [hostName("h1"), hostName("h2"), hostName("h3")];
const group = (id: string, rules: object) => ({ id, owner: "shop", ingress: [], egress: [], ...rules });
const open = { protocol: 6, fromPort: 80, toPort: 80, icmpType: 0, icmpCode: 0 };
/** Two instances of two groups, or of one. */
const viewOf = (hasRule: boolean, other = "sg-2"): NetworkView =>
  ({
    mode: "MANAGED",
    instances: [
      { id: "i-1", owner: "shop", securityGroups: ["sg-1"] },
      { id: "i-2", owner: "shop", securityGroups: [other] },
    ],
    securityGroups: hasRule
      ? [
          group("sg-1", { egress: [{ ...open, group: "sg-2" }] }),
          group("sg-2", { ingress: [{ ...open, group: "sg-1" }] }),
        ]
      : [group("sg-1", {}), group("sg-2", {})],
  }) as unknown as NetworkView;

test("in MANAGED what leaves a group goes by who carries the cluster, by the rules that are in force there; what stays in one does not", () => {
  const truth = new Truth();
  const cut = new Set<string>();
  const kernel = {
    network: { isOpen: (one: string, two: string) => !cut.has(`${one} ${two}`) && !cut.has(`${two} ${one}`) },
  } as unknown as Kernel;
  const machine = (host: typeof h1, instance: string, address: string) => {
    truth.dataplane(host).mode.addresses.set(address, instance);
    const made = { host, interfaces: [{ instance, address: ipv4(address) }] } as unknown as MachineTruth;
    truth.machines.add(made);
    return { made, card: { instance, address: ipv4(address) } as unknown as Packet["fromInterface"] };
  };
  const [one, two] = [machine(h1, "i-1", "10.0.0.9"), machine(h2, "i-2", "10.0.0.25")];
  const passes = (): boolean =>
    sendByMode(kernel, truth, {
      from: one.made,
      fromInterface: one.card,
      to: two.made,
      toInterface: two.card,
      protocol: "tcp",
      port: 80,
    });
  const inForce = (nodes: NetworkView, host: NetworkView): void => {
    for (const node of [h1, h2]) truth.dataplane(node).mode.view = nodes;
    truth.dataplane(h3).mode.view = host;
  };
  inForce(viewOf(true), viewOf(true));
  assert.ok(!passes(), "nobody carries the cluster");
  truth.dataplane(h3).mode.carries = "one";
  assert.ok(passes());
  inForce(viewOf(true), viewOf(false));
  assert.ok(!passes(), "the rule is at the nodes, which ask none");
  inForce(viewOf(false), viewOf(true));
  assert.ok(passes(), "the rule is at the network host alone");
  cut.add("h3 h2");
  assert.ok(!passes(), "the network host does not reach the receiver's");
  inForce(viewOf(false, "sg-1"), viewOf(false, "sg-1"));
  assert.ok(passes(), "members of one group");
  cut.add("h1 h2");
  assert.ok(!passes(), "which are cut from each other");
});
