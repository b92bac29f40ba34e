import { join } from "node:path";
import { firstServices, otherThanFirst } from "../core/cells/binding.ts";
import { rootCell } from "../core/documents/cells.ts";
import { serviceRoles } from "../core/documents/service-roles.ts";
import { network, type ProcessConfiguration, ports } from "../runtime/installation.ts";
import { memberDirectory, memberRunDirectory, type Places, pageDirectory } from "./places.ts";
import type { InstallationRecord } from "./record.ts";
import { type Member, macOf } from "./supervisor/members.ts";

/** Descriptor under which the gateway finds its listening socket. */
export const listenDescriptor = 3;
/** The member's device on the underlay. */
export const underlayDevice = "eth0";
/** A host's bridge, of which that device is a port. */
export const hostBridge = "cells0";

/** The network outside: where its router is, hosts' device there, and an address of somebody behind the router. */
export const outside = {
  namespace: "outside",
  device: "out0",
  router: "192.0.2.1",
  somebody: "203.0.113.9",
  prefix: 24,
  host: (number: number): string => `192.0.2.${10 + number}`,
} as const;

/** Where a resolver of the operator's is on the management network, if somebody runs one there. */
export const resolver = { namespace: "resolver", device: "eth0", address: "10.0.0.9" } as const;

export interface MemberFiles {
  readonly configuration: string;
  readonly certificate: string;
  readonly data: string;
  /** Hosts only: the installation's gossip key. */
  readonly gossipKey: string;
}
export const memberFiles = (at: Places, member: Member): MemberFiles => {
  const own = memberDirectory(at, member.name);
  const certificate = join(own, "certificate");
  const gossipKey = join(certificate, "gossip.key");
  return { configuration: join(own, "config.json"), certificate, data: join(own, "data"), gossipKey };
};

/** Of CaaS, where `up` writes its credential of the part of the cell `primary` that is its own. */
export const volumesCredentialFile = (at: Places, member: Member): string =>
  join(memberFiles(at, member).data, "volumes.credential");

/** What a host says for the modes of Eucalyptus, and where: what is in place there goes with the machine, and so may its files. */
export const modesOf = ({ networkHosts = [] }: Pick<InstallationRecord, "networkHosts">, { name }: Member) =>
  ({
    directory: join(memberRunDirectory(name), "eucalyptus"),
    peer: networkHosts.includes(name) ? "network" : "node",
    cluster: "one",
  }) as const;
/** Of the machine, as `eucalyptus.conf` has it. Tags of MANAGED are on the wire itself. */
export const modesOfMachine = `VNET_PUBINTERFACE=${outside.device}\nVNET_PRIVINTERFACE=${underlayDevice}\nVNET_BRIDGE=${hostBridge}\n`;

/** Memory of a host that its own management keeps. */
const reservedMiB = 256;

/** Where personalities find the gateway, which is a process beside theirs. */
const insideGateway = { address: network.gateway, port: serviceRoles.gateway.http };

/** Of a root cell whose services are processes: of its VMs none ever starts, so nobody has to be there who enrols them. */
const noServices = {
  management: network.underlay,
  authority: { address: network.authority, fingerprint: "0".repeat(64) },
};

type RolePart = Pick<
  ProcessConfiguration,
  "controller" | "host" | "presence" | "agent" | "gateway" | "personality" | "tenancy"
>;
const rolePart = (
  at: Places,
  record: InstallationRecord,
  member: Member,
  imagesDirectory: string,
  cgroups: readonly string[],
): RolePart => {
  const mac = macOf(member.address);
  switch (member.role) {
    case "controller": {
      const cell = member.name.slice("controller.".length);
      const known = record.cells[cell];
      if (known === undefined) throw new Error(`there is no cell ${cell} in the installation's record`);
      const { cellUid, cellNumber, services = firstServices } = known;
      const networkMode = record.networkModes?.[cell];
      const credentialHashes = [record.credentialHash];
      const cellPart = { cell, cellUid, cellNumber, ...otherThanFirst(services), domain: network.domain };
      const mode = networkMode === undefined ? {} : { networkMode };
      const isChild = record.rootCell === true ? { cellManager: true as const } : {};
      const root = record.rootCell === true && cell === rootCell ? { root: noServices } : {};
      return {
        controller: {
          ...cellPart,
          ...mode,
          ...isChild,
          ...root,
          mac,
          credentialHashes,
          resolvers: [resolver.address],
          directory: true,
        },
      };
    }
    case "host": {
      const { hostMemoryMiB: memoryMiB, hostCpus: cpus } = record;
      return {
        host: {
          host: member.name,
          uplink: underlayDevice,
          bridge: hostBridge,
          mac,
          outside: { device: outside.device, routers: [outside.router] },
          memoryMiB,
          reservedMiB,
          cpus,
          cgroups,
          ...(record.networkModes === undefined ? {} : { eucalyptus: modesOf(record, member) }),
        },
        presence: { gossipKeyFile: memberFiles(at, member).gossipKey },
      };
    }
    case "agent":
      return { agent: { server: member.name, imagesDirectory, cgroups } };
    case "gateway":
      return {
        gateway: {
          listenFd: listenDescriptor,
          ...(record.rootCell === true ? {} : { supervisorSocket: at.supervisorSocket }),
          credentialHashes: [record.credentialHash],
          ...(record.profile === undefined ? { page: pageDirectory(at) } : {}),
          ...(record.doors === undefined ? {} : { inside: insideGateway }),
        },
      };
    case "personality.caas":
      return {
        personality: {
          listenFd: listenDescriptor,
          gateway: insideGateway,
          inside: { address: member.address, port: ports.http },
          credentialFile: volumesCredentialFile(at, member),
        },
      };
    case "tenancy":
      return { tenancy: { credentialHashes: [record.credentialHash] } };
    default:
      return {};
  }
};

export const configurationOf = (
  at: Places,
  record: InstallationRecord,
  member: Member,
  certificate: ProcessConfiguration["certificate"],
  imagesDirectory: string,
  cgroups: readonly string[],
  /** Of a self-hosted testbed. */
  further: Partial<ProcessConfiguration> = {},
): ProcessConfiguration => ({
  name: member.peer,
  role: member.role,
  address: member.address,
  directory: memberFiles(at, member).data,
  runDirectory: memberRunDirectory(member.name),
  certificate,
  peersFile: join(at.shared, "peers.json"),
  ...rolePart(at, record, member, imagesDirectory, cgroups),
  ...further,
});
