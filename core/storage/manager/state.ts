import {
  type CellName,
  type ElementPath,
  type PeerName,
  peerName,
  serverName,
  type Uid,
} from "../../../model/cell/identifiers.ts";
import { rootDomain } from "../../../model/contract/tenancy/tenancy.ts";
import type { Json } from "../../../model/json/json.ts";
import { limits } from "../../../model/limits.ts";
import type { AgentBinned } from "../../documents/bin.ts";
import type { DesiredGuard } from "../../documents/ha.ts";
import type { DesiredCellOwner } from "../../documents/tenancy.ts";
import type {
  AgentImage,
  AgentLeaseActual,
  AgentReadersActual,
  AgentServer,
  AgentVolume,
  AgentVolumeActual,
  DesiredConnection,
  DesiredGrant,
  DesiredVolume,
  LeaseHolder,
} from "../../documents/vocabulary.ts";
import type { Granted, HeldFor } from "../../documents/volumes.ts";
import type { Restored } from "../../env.ts";
import { createOutbox, type Outbox } from "../../outbox.ts";
import type { Kept, Recovery, WantedFence } from "./records.ts";
import { createKept } from "./records.ts";

/** Whose a cell is. */
export type CellHolder = Pick<DesiredCellOwner, "account" | "uids">;

/** Where a volume lies and what it is made of. Written before the agent hears of it. */
export interface VolumeRecord {
  readonly client: PeerName;
  readonly cell: CellName;
  readonly path: ElementPath;
  readonly agent: PeerName;
  readonly source: AgentVolume["source"];
  readonly origin: Uid | null;
  readonly sizeMiB: number;
  /** Immutable since its first copy or its first read-only connection: never leased again. */
  readonly frozen: boolean;
  /** Its agent has had it: from then on it can be lost, and must never be made anew. */
  readonly made?: true;
  /** It was found under a copy (recovery/recovery.ts), and its cell has not said since that it does not desire it. */
  readonly found?: true;
  /** It begins with a file of its agent's bin, which was that volume's. */
  readonly from?: { readonly file: string; readonly volume: Uid };
  /** Copies in other cells that its own cell has said it is held for, and that are not made (`left/holds.ts`). Absent: none. */
  readonly heldFor?: readonly HeldFor[];
  /** Digest of the image that its origin is, unwritten. Absent: not so, or not known. */
  readonly originImage?: string;
}
/** The last epoch that this manager asked for. */
export interface LeaseRecord {
  readonly epoch: number;
  readonly holder: LeaseHolder | null;
  /** Whose desire the holder is; null for a holder that only the agent remembered. */
  readonly connection: Uid | null;
}
/** A connection that was granted and is not confirmed to be over. */
export interface ConnectionRecord {
  readonly client: PeerName;
  readonly volume: Uid;
  readonly mode: "rw" | "ro";
  readonly holder: LeaseHolder;
}

/** What one storage agent says is so. */
export interface AgentView {
  readonly name: PeerName;
  /** null: not heard from since the start. */
  reachable: boolean | null;
  /** It has said all that it has, since the start. */
  inStep: boolean;
  /** Its store is older than what this manager has seen of it, and no operator has looked. */
  older: boolean;
  server: AgentServer | null;
  readonly images: Map<string, AgentImage>;
  readonly volumes: Map<Uid, AgentVolumeActual>;
  readonly leases: Map<Uid, AgentLeaseActual>;
  readonly readers: Map<Uid, AgentReadersActual>;
  /** Files of deleted volumes, by their names there. */
  readonly bin: Map<string, AgentBinned>;
  /** Sum over the volumes placed there; more than its free space, since files are sparse. */
  provisionedMiB: number;
}

export interface Wanted<T> {
  readonly client: PeerName;
  readonly document: T;
}

/** Of volumes that are held for a copy: by volume their grants, as `grants` has them, and those of which a copy came or went. */
export interface Holds {
  readonly of: Map<Uid, Set<string>>;
  readonly touched: Set<Uid>;
}

export interface ManagerState {
  readonly self: PeerName;
  readonly outbox: Outbox;
  /** Below which every cell has its own. */
  readonly domain: string;
  started: boolean;
  /** Null: this store never had any (`recovery/recovery.ts`). */
  recovery: Recovery | null;
  /** Agents that know documents of this manager which its store has not. */
  readonly lostAt: Set<PeerName>;
  /** Nothing was lost, or controllers have had their time since to say what they desire. */
  explained: boolean;
  /** Something was lost, as was found in this start; and who has said something that it desires, since. */
  lost: boolean;
  /** Since the start, or while servers are waited for, some server had something, whether it still has it or not. */
  found: boolean;
  readonly spoke: Set<PeerName>;
  /** Controllers that have said since the start all that they desire. */
  readonly saidAll: Set<PeerName>;
  /** What controllers were last told of the servers' room. */
  offered: Json | undefined;
  readonly agents: Map<PeerName, AgentView>;
  readonly wantedVolumes: Map<Uid, Wanted<DesiredVolume>>;
  readonly wantedConnections: Map<Uid, Wanted<DesiredConnection>>;
  /** By client and UID: a grant counts for its granter's volumes alone. */
  readonly grants: Map<string, Wanted<DesiredGrant>>;
  /** By volume, which of them are of it. */
  readonly grantsOf: Map<Uid, Set<string>>;
  readonly holds: Holds;
  /** By client and UID: volumes of which what they are held for is given up. */
  readonly letGo: Set<string>;
  /** By child cell of the root cell: the account that has it, and all cells in it. Of others nothing is known. */
  readonly owners: Map<string, CellHolder>;
  /** By VM, and by the HA Manager that wants it: up to which incarnation it is fenced (`fences/fences.ts`). */
  readonly fences: Map<Uid, Map<PeerName, WantedFence>>;
  /** By cell, whom its controller has said looks after it; of others it is the first HA Manager. */
  readonly guards: Map<CellName, DesiredGuard>;
  /** Cells of which that is not known: what their controllers have said cannot be read. */
  readonly unreadGuards: Set<CellName>;
  /** What others than the owner of a UID desire under it, by key and client (`recovery/owner.ts`). */
  readonly rivals: Map<string, Map<PeerName, Json>>;
  /** Keys of which the owner may be another by now. */
  readonly unsettled: Set<string>;
  readonly volumes: Map<Uid, VolumeRecord>;
  readonly leases: Map<Uid, LeaseRecord>;
  readonly connections: Map<Uid, ConnectionRecord>;
  /** Connections that want or have a volume, copies that are made of it, and copies that wait for it. */
  readonly connectionsOf: Map<Uid, Set<Uid>>;
  readonly copiesOf: Map<Uid, Set<Uid>>;
  /** Copies that servers have, by what they are copies of, whether this manager knows of them or not. */
  readonly copiesHeldOf: Map<Uid, Set<Uid>>;
  readonly waitingCopiesOf: Map<Uid, Set<Uid>>;
  /** Volumes without a place: looked at again whenever a server changes. */
  readonly unplaced: Set<Uid>;
  /** Volumes and connections whose stored desire cannot be read: they stay as they are. */
  readonly unread: Set<Uid>;
  /** Volumes that were taken back at a store that does not know them, and by whom (`recovery/ended.ts`). */
  readonly ended: Map<PeerName, Set<Uid>>;
  /** Volumes to look at before the step ends. */
  readonly dirty: Set<Uid>;
  readonly kept: Kept;
}

export function restoreManager(
  restored: Restored,
  self: PeerName,
  agents: readonly PeerName[],
  domain: string,
): ManagerState {
  const state: ManagerState = {
    self,
    outbox: createOutbox(restored),
    domain,
    started: false,
    recovery: (restored.records.get("recovery") ?? null) as unknown as Recovery | null,
    lostAt: new Set([...(restored.forkedAt ?? [])].filter(([, { forked }]) => forked).map(([peer]) => peer)),
    explained: true,
    lost: false,
    found: (restored.records.get("recovery") as unknown as Recovery | undefined)?.found === true,
    spoke: new Set(),
    saidAll: new Set(),
    offered: undefined,
    agents: new Map(agents.map((name) => [name, createAgentView(name)])),
    wantedVolumes: new Map(),
    wantedConnections: new Map(),
    grants: new Map(),
    grantsOf: new Map(),
    holds: { of: new Map(), touched: new Set() },
    letGo: new Set(),
    owners: new Map(),
    fences: new Map(),
    guards: new Map(),
    unreadGuards: new Set(),
    rivals: new Map(),
    unsettled: new Set(),
    volumes: new Map(),
    leases: new Map(),
    connections: new Map(),
    connectionsOf: new Map(),
    copiesOf: new Map(),
    copiesHeldOf: new Map(),
    waitingCopiesOf: new Map(),
    unplaced: new Set(),
    unread: new Set(),
    ended: new Map(),
    dirty: new Set(),
    kept: createKept(),
  };
  for (const [key, value] of restored.records) {
    const [kind, id] = splitKey(key);
    if (kind === "volume") keepVolume(state, id, value as unknown as VolumeRecord);
    if (kind === "ended") keepEnded(state, id);
    if (kind === "lease") state.leases.set(id, value as unknown as LeaseRecord);
    if (kind === "connection") {
      const record = value as unknown as ConnectionRecord;
      state.connections.set(id, record);
      addTo(state.connectionsOf, record.volume, id);
    }
  }
  return state;
}

function keepEnded({ ended }: ManagerState, id: string): void {
  const [client, volume] = splitKey(id);
  const own = ended.get(client as PeerName) ?? new Set<Uid>();
  ended.set(client as PeerName, own.add(volume));
}

const createAgentView = (name: PeerName): AgentView => ({
  name,
  reachable: null,
  inStep: false,
  older: false,
  server: null,
  images: new Map(),
  volumes: new Map(),
  leases: new Map(),
  readers: new Map(),
  bin: new Map(),
  provisionedMiB: 0,
});

/** Takes a volume's record into memory and into the indexes that rest on it. */
export function keepVolume(state: ManagerState, volume: Uid, record: VolumeRecord): void {
  const agent = state.agents.get(record.agent);
  if (agent !== undefined) agent.provisionedMiB += record.sizeMiB - (state.volumes.get(volume)?.sizeMiB ?? 0);
  state.kept.touched.add(volume);
  state.volumes.set(volume, record);
  if (record.origin === null) return;
  addTo(state.copiesOf, record.origin, volume);
  state.holds.touched.add(record.origin);
}
export function forgetVolume(state: ManagerState, volume: Uid, record: VolumeRecord): void {
  const agent = state.agents.get(record.agent);
  if (agent !== undefined) agent.provisionedMiB -= record.sizeMiB;
  state.volumes.delete(volume);
  state.kept.touched.add(volume);
  if (record.origin === null) return;
  removeFrom(state.copiesOf, record.origin, volume);
  state.holds.touched.add(record.origin);
}

/** Servers that say they have it. */
export const placesOf = ({ agents }: ManagerState, volume: Uid): readonly AgentView[] =>
  [...agents.values()].filter(({ volumes }) => volumes.has(volume));

/** How many epochs a volume's lease has had, whoever remembers more: with none, nobody could ever write it. */
export const epochsOf = (state: ManagerState, agent: AgentView, volume: Uid): number =>
  Math.max(state.leases.get(volume)?.epoch ?? 0, agent.leases.get(volume)?.epoch ?? 0);

/** What is promised there by this manager and, as the server says, by others. */
export const promisedMiB = ({ self }: ManagerState, { provisionedMiB, server }: AgentView): number =>
  Object.entries(server?.promisedMiB ?? {}).reduce(
    (sum, [manager, MiB]) => (manager === self ? sum : sum + MiB),
    provisionedMiB,
  );

export function addTo<T extends string>(index: Map<Uid, Set<T>>, key: Uid, value: T): void {
  const set = index.get(key) ?? new Set<T>();
  index.set(key, set.add(value));
}
export function removeFrom<T extends string>(index: Map<Uid, Set<T>>, key: Uid, value: T): void {
  const set = index.get(key);
  set?.delete(value);
  if (set?.size === 0) index.delete(key);
}

/** No room for a single block: whoever writes there must wait. */
export const isFull = ({ server }: AgentView): boolean => server !== null && server.freeMiB < 1;

/** Why this server cannot be read or written now; null: nothing is known against it. Names the server. */
export function serverTrouble(agent: AgentView): string | null {
  if (agent.reachable === false) return `storage server ${serverOf(agent.name)} is not reachable`;
  if (isFull(agent)) return `storage server ${serverOf(agent.name)} is full: whoever writes there waits for space`;
  return null;
}

/** Marks a volume, and the copies that wait for it, to be looked at. */
export function mark(state: ManagerState, volume: Uid): void {
  state.dirty.add(volume);
  state.kept.touched.add(volume);
  for (const copy of state.waitingCopiesOf.get(volume) ?? []) state.dirty.add(copy);
}
/**
 * Marks volumes and all that is made of them: what an agent serves has changed, and with it the chains. Goes through each
 * once, by a list: how long a chain is, a tenant decides.
 */
export function markChains(state: ManagerState, volumes: Iterable<Uid>): void {
  const all = new Set(volumes);
  // What is added is gone through too.
  for (const volume of all) {
    mark(state, volume);
    for (const copy of state.copiesOf.get(volume) ?? []) all.add(copy);
  }
}
/** A volume and the origins below it; as far as it is known. Never more than one more than are allowed. */
export function layersOf(state: ManagerState, volume: Uid): number {
  let layers = 0;
  for (let at: Uid | null = volume; at !== null && layers <= limits.layers; layers += 1)
    at = state.volumes.get(at)?.origin ?? null;
  return layers;
}

/** `volume/ab-1` → `["volume", "ab-1"]`. */
export function splitKey(key: string): readonly [kind: string, id: Uid] {
  const slash = key.indexOf("/");
  return slash < 0 ? [key, "" as Uid] : [key.slice(0, slash), key.slice(slash + 1) as Uid];
}

export const serverOf = (agent: PeerName) => serverName(agent.slice("agent.".length));
export const sameHolder = (a: LeaseHolder | null, b: LeaseHolder | null): boolean =>
  a === b || (a !== null && b !== null && a.vm === b.vm && a.incarnation === b.incarnation && a.host === b.host);
export const holderOf = (connection: DesiredConnection): LeaseHolder => ({
  vm: connection.vm,
  incarnation: connection.incarnation,
  host: connection.host,
});
export const describeHolder = (holder: LeaseHolder): string =>
  `VM ${holder.vm} (incarnation ${holder.incarnation} on ${holder.host})`;

/** A volume as people name it. */
export const nameOf = (state: ManagerState, volume: Uid): string =>
  state.volumes.get(volume)?.path ?? state.wantedVolumes.get(volume)?.document.path ?? volume;

/** Does the owner of a volume let this client's element copy or connect it? Its own cell always may. */
export function mayUse(state: ManagerState, use: "copy" | "connect", volume: Uid, client: PeerName, vm: Uid | null) {
  const owner = state.volumes.get(volume)?.client ?? state.wantedVolumes.get(volume)?.client;
  if (owner === undefined || owner === client) return true;
  const domain = `${client.slice("controller.".length)}.${state.domain}`;
  return [...(state.grantsOf.get(volume) ?? [])].some((of) => {
    const { client: granter, document } = state.grants.get(of) ?? {};
    return (
      granter === owner &&
      document?.grant === use &&
      isFor(document, { holder: cellHolderOf(state, client), vm, domain })
    );
  });
}
/** Marks what a cell may use, or no more, since another one has it; all else is as it was, however much is granted. */
export function markGranted(state: ManagerState, before: CellHolder | undefined, after: CellHolder | undefined): void {
  for (const { document } of state.grants.values()) {
    const { to, volume } = document;
    const domain = "domain" in to ? to.domain : "";
    const isForHolder = (holder: CellHolder | undefined): boolean => isFor(document, { holder, vm: null, domain });
    if (isForHolder(before) !== isForHolder(after)) mark(state, volume);
  }
}
const cellHolderOf = ({ owners }: ManagerState, client: PeerName): CellHolder | undefined =>
  owners.get(client.slice(client.lastIndexOf(".") + 1));

interface Asking {
  readonly holder: CellHolder | undefined;
  readonly vm: Uid | null;
  /** Of its cell. */
  readonly domain: string;
}
function isFor({ to, holder: meant }: Granted, { holder, vm, domain }: Asking): boolean {
  if ("vm" in to) return to.vm === vm;
  // By a path it may be somebody who came later: whose UID is not known waits until it is.
  const [account, ...domains] = holder?.uids ?? [];
  const isMeant = meant === undefined || ("tenants" in to ? domains.includes(meant) : account === meant);
  if (!isMeant) return false;
  if ("domain" in to) return to.domain === domain;
  if ("account" in to) return holder?.account === to.account;
  return to.tenants === rootDomain || holder?.account.startsWith(`${to.tenants}/`) === true;
}

/**
 * Whose volume an origin is that its cell has left: nobody's that could ask for it, until its last copy is gone
 * (decision 30, Deleting). So a copy in one cell does not keep another one from ending.
 */
export const provider = peerName("provider");
