import { mostRulesOfGroup } from "../../../model/cell/network/modes.ts";
import {
  count,
  document,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  pattern,
  text,
} from "../../../model/json/reader.ts";
import type {
  ActualInstance,
  ActualNetwork,
  ActualNetworkBeat,
  ActualNetworkLease,
  ActualSecurityGroup,
  DesiredGroupRule,
  DesiredInstance,
  DesiredNetworkView,
  DesiredSecurityGroup,
  ElasticAddress,
  NetworkSlice,
  PlacedAddress,
  PlacedInstance,
} from "../network/eucalyptus.ts";
import { digest } from "./network.ts";
import { address, cellText, hostText, most, network, pathText, progressFields, sentence, uidText } from "./values.ts";

/** Readers of what is said about networks by the rules of Eucalyptus. What a view says in them is read once more where it is put in place. */

const own = { field: "uid", of: ({ uid }: { readonly uid: string }) => uid } as const;
export const desiredInstance = document(
  object<DesiredInstance>({
    uid: uidText,
    cell: cellText,
    path: pathText,
    host: hostText,
    groups: list(uidText, most.groups),
    elastic: optional(oneOf(true)),
    off: optional(oneOf(true)),
  }),
  { key: own },
);
export const instanceId = pattern(/^i-[0-9a-f]{8}$/, "an instance's id: `i-` and 8 hexadecimal digits");
export const actualInstance = document(
  object<ActualInstance>({
    ...progressFields,
    id: nullable(instanceId),
    address: nullable(address),
    mac: nullable(text(17)),
    learnt: optional(oneOf(true)),
    elastic: optional(object<ElasticAddress>({ address: nullable(address), reason: nullable(sentence) })),
  }),
);
const [port, icmp] = [integer(0, 65_535), integer(-1, 255)];
const groupRule = object<DesiredGroupRule>({
  protocol: integer(-1, 255),
  fromPort: port,
  toPort: port,
  icmpType: icmp,
  icmpCode: icmp,
  cidr: optional(network),
  group: optional(uidText),
});
export const desiredSecurityGroup = document(
  object<DesiredSecurityGroup>({
    uid: uidText,
    cell: cellText,
    ingress: list(groupRule, mostRulesOfGroup),
    egress: list(groupRule, mostRulesOfGroup),
  }),
  { key: own },
);
const groupId = pattern(/^sg-[0-9a-f]{8}$/, "a security group's id: `sg-` and 8 hexadecimal digits");
export const actualSecurityGroup = document(
  object<ActualSecurityGroup>({ ...progressFields, rules: digest, id: optional(groupId) }),
);
const viewText = text(2 ** 20);
export const desiredNetworkView = document(
  object<DesiredNetworkView>({
    version: count,
    head: viewText,
    slices: object<DesiredNetworkView["slices"]>({ count, digest }),
    leased: optional(list(text(64), most.clusters)),
    boot: optional(count),
  }),
);
export const networkSlice = document(object<NetworkSlice>({ digest, items: list(viewText, most.rules) }));

const placed = object<PlacedAddress>({
  address,
  state: oneOf("pending", "assigned", "failed"),
  reason: optional(sentence),
});
export const actualNetwork = document(
  object<ActualNetwork>({
    address,
    cluster: text(64),
    peer: oneOf("node", "network"),
    version: count,
    instances: nullable(
      list(
        object<PlacedInstance>({
          id: instanceId,
          cell: optional(cellText),
          private: optional(placed),
          public: optional(placed),
        }),
        most.vmsOfHost,
      ),
    ),
    boot: optional(count),
  }),
);
export const actualNetworkBeat = document(object<ActualNetworkBeat>({ beat: count, leased: optional(count) }));
export const actualNetworkLease = document(object<ActualNetworkLease>({ beat: count }));
