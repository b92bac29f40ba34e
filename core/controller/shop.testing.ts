import { type CellName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import { digestOfText } from "../distribution/views/slices.ts";
import {
  type ActualInstance,
  type ActualSecurityGroup,
  type DesiredInstance,
  type DesiredSecurityGroup,
  textOfRules,
} from "../documents/network/eucalyptus.ts";
import type { ActualConnection, DesiredConnection } from "../documents/vocabulary.ts";

/** The controller of the cell that tests and measurements of one have, and what a Storage Manager grants it at once. */
export const shopOptions = {
  cell: "shop" as CellName,
  cellUid: uid("c1"),
  cellNumber: 7,
  domain: "cells.internal",
  address: ipv4("10.0.3.1"),
  mac: mac("02:00:0a:00:03:01"),
  self: peerName("controller.shop"),
} as const;

/** With an agent, its image says that one runs in the guest. */
export function connectionAnswer({ volume, incarnation, host }: DesiredConnection, hasAgent = false): ActualConnection {
  const layer = {
    volume,
    address: ipv4("10.0.2.1"),
    port: 20_000,
    exportName: `lease-${volume}-${incarnation}-${host}`,
    pskIdentity: "cells",
    pskHex: "00",
    writable: true,
  };
  const boot = { digest: "tiny", address: ipv4("10.0.2.1"), port: 1, commandLine: "", agent: true } as const;
  const attachment = { volume, epoch: incarnation, sizeMiB: 64, layers: [layer], boot: hasAgent ? boot : null };
  return { phase: "ready", reason: null, incarnation, attachment };
}

const answeredElastic = ({ elastic, off }: DesiredInstance, number: number): Partial<ActualInstance> => ({
  ...(elastic === true ? { elastic: { address: ipv4(`192.0.2.${number}`), reason: null } } : {}),
  ...(off === true ? { address: null, mac: null } : {}),
});

/** What the Network View Manager says at once of an instance and of a group. */
export function eucalyptusAnswer(key: string, value: object): ActualInstance | ActualSecurityGroup {
  const ready = { phase: "ready", reason: null } as const;
  const [kind, uid = ""] = key.split("/");
  const number = Number(uid.slice(uid.indexOf("-") + 1));
  const last = number.toString(16).padStart(2, "0").toUpperCase();
  if (kind === "security-group") {
    const rules = digestOfText(textOfRules(value as unknown as DesiredSecurityGroup));
    return { ...ready, rules, id: `sg-000000${last.toLowerCase()}` };
  }
  return {
    ...ready,
    id: `i-000000${last.toLowerCase()}`,
    address: ipv4(`10.9.0.${number}`),
    mac: `D0:0D:00:00:00:${last}`,
    ...answeredElastic(value as unknown as DesiredInstance, number),
  };
}
