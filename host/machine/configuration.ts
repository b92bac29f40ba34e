import { join } from "node:path";
import { peerName } from "../../model/cell/identifiers.ts";
import { agentPorts, type ProcessConfiguration } from "../../runtime/installation.ts";

/** Where a real machine keeps what it is: its configurations, what lasts, what ends with the boot, its units. */
export const places = {
  configuration: "/etc/cells",
  state: "/var/lib/cells",
  run: "/run/cells",
  units: "/etc/systemd/system",
  bridge: "cells0",
} as const;
export const hostFile = join(places.configuration, "host.json");
export const agentFile = join(places.configuration, "agent.json");

/** A machine as it was found, and what was chosen for it. */
export interface Machine {
  /** `<name>` of `host.<name>` and `agent.<name>`. */
  readonly name: string;
  /** On the underlay, IPv4. */
  readonly address: string;
  /** Its device on the underlay. */
  readonly interface: string;
  readonly mac: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  /** Parent control groups of its machines. */
  readonly cgroups: readonly string[];
  /** Where its storage agent keeps volumes; null: it has none. */
  readonly storage: string | null;
  /** Of the storage agent: the images that come with the installation. */
  readonly images: string;
}
/** How it knows the authority. */
export interface AuthorityReference {
  /** `<address>:<port>`. */
  readonly authority: string;
  /** SHA-256 (hexadecimal) of its public key. */
  readonly fingerprint: string;
}

/** A tenth of the memory for the management, within reason. */
const reservedMiB = (memoryMiB: number): number => Math.min(1024, Math.max(256, Math.floor(memoryMiB / 10)));

const common = (role: "host" | "agent", { name, address }: Machine, known: AuthorityReference) => {
  const directory = join(places.state, role);
  const identity = join(directory, "identity");
  return {
    name: peerName(`${role}.${name}`),
    role,
    address,
    directory,
    runDirectory: join(places.run, role),
    certificate: {
      certFile: join(identity, "certificate.pem"),
      keyFile: join(identity, "key.pem"),
      caFile: join(identity, "authority.pem"),
    },
    enrolment: known,
    pinsFile: join(identity, "pins.json"),
    peersFile: join(directory, "peers.json"),
    ...({ followPeers: true } as const),
  };
};

export const hostConfiguration = (machine: Machine, known: AuthorityReference): ProcessConfiguration => {
  const { name, mac, memoryMiB, cpus, cgroups } = machine;
  const own = common("host", machine, known);
  const limits = { memoryMiB, reservedMiB: reservedMiB(memoryMiB), cpus, cgroups };
  return {
    ...own,
    host: { host: name, uplink: machine.interface, bridge: places.bridge, mac, ...limits },
    presence: { gossipKeyFile: join(own.directory, "identity", "gossip.key") },
  };
};

/** Null where the machine has no storage. */
export const agentConfiguration = (machine: Machine, known: AuthorityReference): ProcessConfiguration | null => {
  const { name, storage, images } = machine;
  if (storage === null) return null;
  return {
    ...common("agent", machine, known),
    directory: storage,
    distributionPort: agentPorts.distribution,
    httpPort: agentPorts.http,
    agent: { server: name, imagesDirectory: images },
  };
};
