import { parseNetwork } from "../../../model/addresses/addresses.ts";
import { displayShare } from "../../../model/cell/attributes/display-memory.ts";
import type { Element, VmElement } from "../../../model/cell/cell.ts";
import { hostPeer, type Ipv4, type Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { desiredVm } from "../../documents/readers/host.ts";
import type { Attachment, DesiredDisk, DesiredInterface, DesiredVm } from "../../documents/vocabulary.ts";
import { sameJson } from "../../outbox.ts";
import { meansOf } from "../network/entrance.ts";
import { instanceOf, isOnMode } from "../network/instances.ts";
import { isOnManagement } from "../network/management.ts";
import { cellDomain, hostNameOf } from "../network/names.ts";
import type { PlacedInterface } from "../network/policy.ts";
import type { ElementRecord, Run, RunDisk } from "../records.ts";
import { byBootOrder } from "../services/boot-disks.ts";
import { isOwnController, isService, serviceData, servicesOf } from "../services/service-data.ts";
import { addDesire, type ControllerState, desiredNow, elementOf, keepDesire, recordAt } from "../state.ts";
import { attachmentOf } from "./life-cycle.ts";
import { trialTimeoutMs } from "./trial-timeout.ts";

/** The interfaces of incarnations that a host was told of, and where they are, by VM. */
export function placeInterfaces(state: ControllerState): void {
  const { placed } = state.derived;
  state.pass.each("placed", state.vms, ({ uid, run }) => {
    const now = run === null ? [] : placedOf(state, uid, run);
    if (now.length === 0) placed.delete(uid);
    else if (!sameJson(placed.get(uid) as unknown as Json, now as unknown as Json)) placed.set(uid, now);
  });
}

export function placedOf(state: ControllerState, vm: Uid, run: Run): readonly PlacedInterface[] {
  const vmIdentity = state.indexes.identities.get(vm);
  const { host } = run;
  if (host === null || !run.handedOver || vmIdentity === undefined || isOnMode(state)) return [];
  return run.interfaces.flatMap((uid) => {
    const record = state.elements.get(uid);
    // Where the management network's interfaces are, bridges and ARP find out.
    if (record === undefined || isOnManagement(state, record)) return [];
    const entry = policyInterface(state, record, vmIdentity);
    return entry === null ? [] : [{ ...entry, host }];
  });
}

/** All of them, in the order of the VMs. */
export function placedInterfaces(state: ControllerState): readonly PlacedInterface[] {
  const byVm = [...state.derived.placed].sort(([one], [other]) => state.vms.orderOf(one) - state.vms.orderOf(other));
  return byVm.flatMap(([, placed]) => placed);
}

/** An interface as rules see it; null while it has no address. */
export function policyInterface(
  state: ControllerState,
  record: ElementRecord,
  vmIdentity: number,
): Omit<PlacedInterface, "host"> | null {
  const subnet = record.allocation === null ? undefined : state.elements.get(record.allocation.subnet);
  if (record.allocation === null || subnet === undefined) return null;
  return {
    path: record.path,
    address: record.allocation.address,
    identity: record.identity,
    vmIdentity,
    subnetIdentity: subnet.identity,
    ...traitsOf(elementOf(state, record)),
  };
}
function traitsOf(element: Element | undefined): Pick<PlacedInterface, "forwards" | "groups"> {
  if (element?.type !== "VirtualInterface") return {};
  const { forwards, groups } = element;
  return { ...(forwards === undefined ? {} : { forwards }), ...(groups === undefined ? {} : { groups }) };
}

/** The VM documents of all incarnations that should run. */
export function desireVms(state: ControllerState): void {
  state.pass.each("vm documents", state.vms, ({ uid, run }, _uid, desires) => {
    if (run?.stage !== "running" || run.host === null) return;
    const document = vmDocument(state, uid, run);
    const peer = hostPeer(run.host);
    if (document === null) keepDesire(state, desires, peer, `vm/${uid}`);
    else addDesire(desires, peer, `vm/${uid}`, document);
  });
}

function vmDocument(state: ControllerState, uid: Uid, run: Run): DesiredVm | null {
  const record = state.elements.get(uid);
  const element = record === undefined ? undefined : elementOf(state, record);
  if (element?.type !== "VM" || run.host === null) return null;
  const disks: DesiredDisk[] = [];
  for (const disk of run.disks) {
    const document = diskDocument(state, uid, run, disk);
    if (document === null) return null;
    disks.push(document);
  }
  const service = serviceOf(state, uid, run, element.data);
  if (service === null) return null;
  if (isOnMode(state) && run.interfaces.length > 0 && instanceOf(state, uid)?.id == null) return null;
  const name = hostNameOf(element.path);
  const interfaces = run.interfaces.flatMap((link) => interfaceDocument(state, link, uid, name));
  return {
    uid,
    cell: state.options.cell,
    path: element.path,
    name,
    incarnation: run.incarnation,
    power: "on",
    memoryMiB: run.memoryMiB,
    cpus: run.cpus,
    disks,
    interfaces,
    ...service,
    ...(run.boot === undefined ? {} : { boot: run.boot }),
    ...(run.terms === undefined ? {} : { terms: run.terms }),
    ...(run.nice === undefined ? {} : { nice: run.nice }),
    ...(service.restart === undefined ? {} : trialOf(state, uid, run)),
    ...(awaitsGuest(element, disks) ? { ready: "booted" as const } : {}),
    ...(element.start === "resume" ? { start: element.start } : {}),
    ...(element.display === undefined ? {} : { display: element.display, besideMiB: displayShare(element) }),
    ...livenessOf(state, element),
  };
}

/** Is it ready only when its guest has come up? */
const awaitsGuest = ({ ready }: VmElement, disks: readonly DesiredDisk[]): boolean =>
  ready === undefined ? disks.toSorted(byBootOrder)[0]?.attachment.boot?.agent === true : ready === "booted";

function livenessOf(state: ControllerState, { liveness }: VmElement): Pick<DesiredVm, "liveness"> {
  if (liveness === undefined) return {};
  const { interface: path, port = null, ...more } = liveness;
  const asked = path === undefined ? undefined : recordAt(state, path)?.uid;
  return { liveness: { ...more, port, ...(asked === undefined ? {} : { interface: asked }) } };
}

/** Null while it is not known how the volume is reached. */
function diskDocument(state: ControllerState, vm: Uid, run: Run, disk: RunDisk): DesiredDisk | null {
  const { connection, volume, busType, busNumber, busSlot, bootOrder } = disk;
  const before = run.host === null ? undefined : desiredVm.of(desiredNow(state, hostPeer(run.host), `vm/${vm}`));
  // After a restart, or while the Storage Manager is away, the last known attachment of this incarnation holds.
  const known = before?.incarnation === run.incarnation ? [...before.disks, ...trialDisks(before)] : [];
  const attachment: Attachment | undefined =
    attachmentOf(state, connection, run) ?? known.find((each) => each.connection === connection)?.attachment;
  if (attachment === undefined) return null;
  const readOnly = attachment.layers[0]?.writable !== true;
  const path = state.elements.get(volume)?.path;
  return {
    connection,
    ...(path === undefined ? {} : { path }),
    busType,
    busNumber,
    busSlot,
    bootOrder,
    readOnly,
    attachment,
  };
}
const trialDisks = ({ trial }: DesiredVm): readonly DesiredDisk[] => (trial === undefined ? [] : [trial.disk]);

/** What the host of the own controller's VM is to try; nothing while it cannot be reached, or when it is settled. */
function trialOf(state: ControllerState, vm: Uid, run: Run): Pick<DesiredVm, "trial"> {
  const upgrade = state.vms.get(vm)?.upgrade;
  if (run.spare === undefined || upgrade?.trying !== run.spare.connection) return {};
  const disk = diskDocument(state, vm, run, run.spare);
  return disk === null ? {} : { trial: { disk, replaces: upgrade.from.connection, withinMs: trialTimeoutMs } };
}

/** What the guest is told; null: its roles are not right, and what it was told stays. */
function serviceOf(
  state: ControllerState,
  uid: Uid,
  run: Run,
  data: Json | undefined,
): Pick<DesiredVm, "data" | "restart"> | null {
  const { options } = state;
  const means = meansOf(state);
  if (means === null || !isService(state, data)) return { data: data ?? null };
  const told = serviceData(options, means, { vm: uid, incarnation: run.incarnation }, data);
  const services = servicesOf(options, data);
  if (!told.ok || !services.ok) return null;
  return { data: told.value, ...(isOwnController(options, services.value) ? { restart: "host" as const } : {}) };
}

/** Its network and gateway are told by the DHCP server of its host, which has them from the view. */
const ofInstance = (address: Ipv4) => ({ cidr: `${address}/32`, gateway: address });

function interfaceDocument(state: ControllerState, uid: Uid, vm: Uid, vmName: string): DesiredInterface[] {
  const record = state.elements.get(uid);
  const vmIdentity = state.elements.get(vm)?.identity ?? 0;
  const entry = record === undefined ? null : policyInterface(state, record, vmIdentity);
  if (record?.allocation == null || entry === null) return [];
  const instance = instanceOf(state, vm)?.id ?? null;
  const range = isOnMode(state)
    ? ofInstance(entry.address)
    : (state.elements.get(record.allocation.subnet)?.range ?? null);
  if (range === null) return [];
  return [
    {
      uid,
      path: record.path,
      mac: record.allocation.mac,
      address: entry.address,
      prefixLength: parseNetwork(range.cidr)?.prefixLength ?? 32,
      gateway: range.gateway,
      nameServer: state.options.address,
      hostName: record.name?.split(".")[0] ?? vmName,
      domain: cellDomain(state),
      identity: entry.identity,
      vmIdentity,
      subnetIdentity: entry.subnetIdentity,
      audience: state.derived.toldAudience.get(record.identity) ?? [],
      ...(isOnManagement(state, record) ? { management: true as const } : {}),
      ...(instance === null || !isOnMode(state) ? {} : { instance }),
    },
  ];
}
