import type { Ipv4, Mac, PeerName, Uid } from "../model/cell/identifiers.ts";
import type { FoundMachine, MachineCondition, MachineEnd } from "./drivers/hypervisor/driver.ts";
import type { InterfaceGroups, NetworkAllocation, RouterFact } from "./drivers/network/driver.ts";
import type { DoubtsRequest } from "./heartbeat/beats-state.ts";
import type { HealthChange } from "./liveness/liveness.ts";
import type { PlacedRequest } from "./network/network-view.ts";
import type { PresenceRequest } from "./presence/presence-state.ts";
import type { SuccessionRequest } from "./root-vm/succession.ts";
import type { Action } from "./service/planner.ts";

/** A guest whose agent is to be asked. */
export interface AwaitedGuest {
  readonly vm: Uid;
  readonly incarnation: number;
  /** Resets so far; an answer from before the last one does not count. */
  readonly reboots: number;
}

/**
 * What the executor and the edge ask the Host Manager's service. An answer leaves only after everything before it is
 * durable: that is why the actions come as an answer, and a start is recorded before it happens.
 */
export type HostRequest =
  /** Where hosts and services are on the underlay, as the authority says. */
  | { readonly kind: "peer-addresses"; readonly addresses: Readonly<Record<string, string>> }
  | PresenceRequest
  | SuccessionRequest
  | DoubtsRequest
  | PlacedRequest
  /** Another host was asked on the network for the HA Manager; `mac`: who answered. */
  | {
      readonly kind: "probed";
      readonly host: string;
      readonly mac: Mac | null;
      readonly machines?: readonly Uid[];
      readonly asked: readonly Uid[];
    }
  /** What the network driver knows of the upstream routers, all of it. */
  | { readonly kind: "routers"; readonly routers: readonly RouterFact[] }
  /** Multicast groups that guests here have joined, all of them. */
  | { readonly kind: "groups"; readonly groups: readonly InterfaceGroups[] }
  /** Once at the start: the machines that run. */
  | { readonly kind: "found"; readonly machines: readonly FoundMachine[] }
  /** → `Action[]`, each then under way until `done`. */
  | { readonly kind: "next" }
  | { readonly kind: "done"; readonly outcome: Outcome }
  | { readonly kind: "machine-ended"; readonly end: MachineEnd }
  | { readonly kind: "machine-condition"; readonly condition: MachineCondition }
  /** → `ProbeTarget[]`: the whole of what is to be asked whether it lives. */
  | { readonly kind: "probe-targets" }
  | { readonly kind: "health"; readonly change: HealthChange }
  /** → `AwaitedGuest[]`: whose agents are to be asked. */
  | { readonly kind: "awaited-guests" }
  | { readonly kind: "guest-up"; readonly guest: AwaitedGuest }
  /** → `HostStatus`. */
  | { readonly kind: "status" }
  /** → `Inventory`: names for what the drivers count. */
  | { readonly kind: "inventory" }
  /** → `InstanceHere | null`: of a mode of Eucalyptus, the machine here that has an address. */
  | { readonly kind: "instance"; readonly address: string }
  /** → `ExecTarget`: may this peer reach into this VM? */
  | {
      readonly kind: "exec-target";
      readonly client: PeerName;
      readonly vm: string;
      readonly incarnation: number | null;
    };

/** `error`: a sentence; null: done. */
export type Outcome =
  | {
      readonly kind: "implement-network";
      readonly revision: string;
      /** Where it failed, empty. */
      readonly allocation: NetworkAllocation;
      readonly error: string | null;
      /** Interfaces that it was to leave in place: of what it did before it failed nothing is known. Absent: it did not fail. */
      readonly tried?: readonly Uid[];
    }
  | {
      readonly kind: Exclude<Action["kind"], "implement-network" | "withdraw-state" | "refuse-machine">;
      readonly vm: Uid;
      readonly error: string | null;
      /** The disk that has grown, by its connection. */
      readonly grown?: { readonly connection: Uid; readonly sizeMiB: number };
      /** A sentence about something that was done, but otherwise than was desired; absent or null: nothing to say. */
      readonly remark?: string | null;
      /** Of a start that failed: its process was killed and is not confirmed gone. */
      readonly unconfirmed?: true;
    };

/** One entry of `InstallationStatus.hosts`. */
export interface HostStatus {
  readonly host: string;
  readonly address: string;
  readonly state: string;
  readonly memoryMiB: number;
  readonly reservedMiB: number;
  readonly usedMiB: number;
  readonly cpus: number;
  readonly accelerator: string;
  readonly vms: number;
  /** What should be known of this host, a sentence; absent: nothing. */
  readonly remark?: string;
}
/** `address`: of its first interface; absent: it has none. */
export type ExecTarget = { readonly vm: Uid; readonly address?: Ipv4 } | { readonly refused: string };
