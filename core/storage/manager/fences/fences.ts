import type { CellName, PeerName, Uid } from "../../../../model/cell/identifiers.ts";
import type { Json } from "../../../../model/json/json.ts";
import { type ActualFence, type FencedVolume, fenceKey, guardKey } from "../../../documents/ha.ts";
import { kindOf } from "../../../documents/permissions.ts";
import { desiredFence, desiredGuard } from "../../../documents/readers/ha.ts";
import { servicePeer } from "../../../documents/service-roles.ts";
import { actualKey, type LeaseHolder } from "../../../documents/vocabulary.ts";
import { cellOfController, log, publishValue } from "../../../outbox.ts";
import type { WantedFence } from "../records.ts";
import { type ManagerState, mark, nameOf, serverOf, serverTrouble } from "../state.ts";

/*
 * A fenced incarnation. The HA Manager desires that every lease which a VM's incarnation has ends, and that it is given none any
 * more, though its controller still desires its connections: nobody has confirmed to that one that the machine has stopped.
 *
 * The leases end as every lease does (`leases.ts`), one epoch after the other and each by its agent's own word. The fence is
 * complete when nothing is left of which this manager knows that the incarnation may write it. Of what it does not know it says
 * so, and never "complete": a manager that has lost its store hears all servers first.
 *
 * The fence counts for the connections of one cell alone, if it is wanted by the HA Manager that this cell's controller names
 * (`guard`), and never for the root controller's own VM, whose leases hosts take over themselves (decision 35).
 */

/** Is this incarnation of a VM, or an earlier one, fenced? `client`: whose desire it is, null where only the holder is known. */
export function isFenced(
  state: Pick<ManagerState, "fences" | Guards>,
  client: PeerName | null,
  { vm, incarnation }: Pick<LeaseHolder, "vm" | "incarnation">,
): boolean {
  const fences = state.fences.get(vm);
  if (fences === undefined || client === null) return false;
  for (const fence of fences.values()) {
    const { incarnation: upTo, cell } = fence.document;
    if (incarnation <= upTo && cellOfController(client) === cell && isByGuard(state, fence)) return true;
  }
  return false;
}

/** One that came back to a cell may still want what it wanted before another one had it. */
const isByGuard = (state: Pick<ManagerState, Guards>, { client, document }: WantedFence): boolean =>
  client === guardOf(state, document.cell) && state.guards.get(document.cell)?.boundAt === document.boundAt;
/** Null: nobody knows. */
const guardOf = ({ guards, unreadGuards }: Pick<ManagerState, Guards>, cell: CellName): PeerName | null =>
  guards.get(cell)?.haManager ?? (unreadGuards.has(cell) ? null : firstHaManager);
type Guards = "guards" | "unreadGuards";
const whoGuards = (state: ManagerState, cell: CellName): string => {
  const guard = guardOf(state, cell);
  return guard === null
    ? `who looks after ${cell} cannot be read: its controller is of a later version and says it in another way; upgrade the Storage Manager`
    : `${cell} is looked after by ${guard}`;
};
const firstHaManager = servicePeer("ha-manager");

export function takeFence(state: ManagerState, client: PeerName, vm: Uid, value: Json): void {
  const document = desiredFence.of(value, vm);
  if (value !== null && document === null) {
    log(state.outbox, "document/refused", {
      from: client,
      key: fenceKey(vm),
      why: "it is malformed; see core/documents/readers/ha.ts for its fields",
    });
    return;
  }
  const fences = state.fences.get(vm) ?? new Map<PeerName, WantedFence>();
  const before = fences.get(client);
  if (document === null) fences.delete(client);
  else {
    const fence: WantedFence = { client, document, concerned: null };
    fences.set(client, fence);
    const isSame =
      before?.document.incarnation === document.incarnation && before.document.boundAt === document.boundAt;
    if (state.started && !isSame) tell(state, fence);
  }
  if (fences.size === 0) state.fences.delete(vm);
  else state.fences.set(vm, fences);
  if (state.started) for (const volume of findConcerned(state, vm)) mark(state, volume);
  if (document === null) say(state, client, vm, null);
}

function tell(state: ManagerState, fence: WantedFence): void {
  const { vm, incarnation, cell } = fence.document;
  if (isByGuard(state, fence)) log(state.outbox, "ha/fencing", { vm, incarnation });
  else {
    const why = whoGuards(state, cell);
    log(state.outbox, "document/refused", { from: fence.client, key: fenceKey(vm), why });
  }
}

/** Who looks after a cell says its controller; null: the first one. */
export function takeGuard(state: ManagerState, client: PeerName, value: Json): void {
  const document = desiredGuard.of(value);
  const own = cellOfController(client) as CellName | null;
  if (own === null) return;
  if (value !== null && (document === null || document.cell !== own || kindOf(document.haManager) !== "ha-manager")) {
    const why = "it is malformed, about another cell than its controller's, or names no HA Manager";
    log(state.outbox, "document/refused", { from: client, key: guardKey, why });
    // Whom it had before it still has; where that is not known, not even the first may end what may be another's.
    if (!state.guards.has(own)) state.unreadGuards.add(own);
    return;
  }
  state.unreadGuards.delete(own);
  if (document === null) state.guards.delete(own);
  else state.guards.set(document.cell, document);
  if (!state.started) return;
  for (const [vm, fences] of state.fences)
    if ([...fences.values()].some((fence) => fence.document.cell === own))
      for (const volume of findConcerned(state, vm)) mark(state, volume);
}

/** Volumes that a VM's connections name, or that it has. */
function findConcerned({ wantedConnections, connections, leases, agents }: ManagerState, vm: Uid): Set<Uid> {
  const found = new Set<Uid>();
  for (const { document } of wantedConnections.values()) if (document.vm === vm) found.add(document.volume);
  for (const { volume, holder } of connections.values()) if (holder.vm === vm) found.add(volume);
  for (const [volume, { holder }] of leases) if (holder?.vm === vm) found.add(volume);
  for (const agent of agents.values())
    for (const [volume, { holder }] of agent.leases) if (holder?.vm === vm) found.add(volume);
  return found;
}

/** A connection of a fenced VM came or went, or a server has said that the VM has a lease. */
export function fenceConcerns({ fences }: Pick<ManagerState, "fences">, vm: Uid): void {
  for (const fence of fences.get(vm)?.values() ?? []) fence.concerned = null;
}

/** Says how far the fences are. Runs after the volumes' own reconciling, of which it only reads what came of it. */
export function sayFences(state: ManagerState): void {
  if (!state.started) return;
  for (const [vm, fences] of state.fences)
    for (const fence of fences.values()) say(state, fence.client, vm, judge(state, fence));
}

function say(state: ManagerState, client: PeerName, vm: Uid, fence: ActualFence | null): void {
  if (!publishValue(state.outbox, actualKey(client, fenceKey(vm)), fence)) return;
  if (fence?.complete === true)
    log(state.outbox, "ha/fenced", { vm, incarnation: fence.incarnation, volumes: fence.volumes.length });
}

function judge(state: ManagerState, fence: WantedFence): ActualFence {
  const { vm, incarnation, cell, boundAt } = fence.document;
  const about = { incarnation, ...(boundAt === undefined ? {} : { boundAt }) };
  if (!isByGuard(state, fence)) {
    return { ...about, complete: false, volumes: [], reason: whoGuards(state, cell) };
  }
  fence.concerned ??= findConcerned(state, vm);
  const { concerned } = fence;
  const waits = whyNotKnown(state) ?? firstHeld(state, vm, incarnation, concerned);
  const volumes = waits === null ? [...concerned].flatMap((volume) => freeEpoch(state, volume)) : [];
  return { ...about, complete: waits === null, volumes, reason: waits };
}

/** What it might not know of. */
function whyNotKnown({ recovery, agents }: ManagerState): string | null {
  const unheard = recovery?.waitsFor ?? [];
  if (unheard.length > 0)
    return `the Storage Manager has lost its store and has not heard ${unheard.map(serverOf).join(", ")} since`;
  const older = [...agents.values()].find((agent) => agent.older);
  return older === undefined ? null : `the store of ${serverOf(older.name)} is older, and nobody has looked`;
}

/** Why the incarnation may still write a volume; null: it can write none. */
function firstHeld(state: ManagerState, vm: Uid, incarnation: number, concerned: ReadonlySet<Uid>): string | null {
  const isIts = (holder: LeaseHolder | null | undefined): boolean =>
    holder?.vm === vm && holder.incarnation <= incarnation;
  for (const volume of concerned) {
    const record = state.volumes.get(volume);
    const agent = record === undefined ? undefined : state.agents.get(record.agent);
    const lease = state.leases.get(volume);
    const actual = agent?.leases.get(volume);
    const isHeld = [...state.agents.values()].some(({ leases }) => isIts(leases.get(volume)?.holder));
    const isWritten = [...(state.connectionsOf.get(volume) ?? [])].some((id) => {
      const granted = state.connections.get(id);
      return granted?.volume === volume && granted.mode === "rw" && isIts(granted.holder);
    });
    // An epoch without a holder counts once its agent has said that it has it.
    const isUnconfirmed =
      lease !== undefined && lease.epoch > 0 && lease.holder === null && !isConfirmed(lease.epoch, actual);
    if (!isWritten && !isIts(lease?.holder) && !isHeld && !isUnconfirmed) continue;
    const trouble = agent === undefined ? null : serverTrouble(agent);
    return trouble === null
      ? `the lease of "${nameOf(state, volume)}" is being fenced`
      : `${trouble}, which has the lease of "${nameOf(state, volume)}"`;
  }
  return null;
}
const isConfirmed = (epoch: number, actual: { readonly epoch: number; readonly phase: string } | undefined): boolean =>
  actual !== undefined && (actual.epoch > epoch || (actual.epoch === epoch && actual.phase === "ready"));

function freeEpoch(state: ManagerState, volume: Uid): readonly FencedVolume[] {
  const lease = state.leases.get(volume);
  return lease === undefined || lease.epoch === 0 || lease.holder !== null ? [] : [{ volume, epoch: lease.epoch }];
}
