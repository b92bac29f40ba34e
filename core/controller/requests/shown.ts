import type { ElementState } from "../../../model/api.ts";
import { getAt } from "../../../model/cell/document.ts";
import { elementPath, hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import { isoTime } from "../../../model/cell/iso-time.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { ok, type Result } from "../../../model/result.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { actualSubnet } from "../../documents/readers/network.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import { isObject, toJson } from "../../outbox.ts";
import { told } from "../changes/standing.ts";
import { stuckIn } from "../explain/stuck.ts";
import { addressOf, elasticAddressOf, instanceOf, isOnMode, networkViewManager } from "../network/instances.ts";
import type { ElementRecord, Rested } from "../records.ts";
import { vmsInPool } from "../services/pools/asked.ts";
import { actualOf, addressManager, type ControllerState, cellManager, recordAt, storageManagerOf } from "../state.ts";
import { hostDied } from "../vm/host-died.ts";
import { actualVmOf } from "../vm/life-cycle.ts";
import { trueSizeMiB } from "../volumes/true-size.ts";

/*
 * What a GET shows of a cell: the model's document at a path, and on demand the state of each element in it. It costs what is
 * shown, however large the rest of the cell is.
 */
type Shown = Result<Json, Diagnostic>;

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "");

/** The document at a path. Null: there is no model. */
export const shownAt = (state: ControllerState, path: string): Shown | null =>
  state.model.document === null ? null : getAt(state.model.document, path);

/** The same with "$state" in every element, also in those that left the model. Null: there is neither model nor any of these. */
export function shownWithState(state: ControllerState, path: string): Shown | null {
  const { document } = state.model;
  if (document === null && state.indexes.deleting.size === 0) return null;
  const names = namesOf(path);
  const end = names.findIndex((name) => name.startsWith("$") || name.startsWith("x."));
  const at = end < 0 ? names : names.slice(0, end);
  const joined = at.join("/");
  const leaving = leavingAt(state, joined);
  const found = getAt(document ?? {}, joined);
  if (!found.ok && leaving.length === 0) return found;
  const annotated = annotate(state, found.ok ? found.value : {}, joined, stuckIn(state));
  const shown = leaving.reduce(
    (tree, record) => placed(tree, namesOf(record.path).slice(at.length), record, state),
    annotated,
  );
  return end < 0 ? ok(shown) : getAt(isObject(shown) ? shown : {}, names.slice(end).join("/"));
}

/**
 * What left the model at a path or below it. It is shown where it was, with its type, until nothing of it is left: it may wait for
 * something. Where a new element has taken its path, that one is shown.
 */
function leavingAt(state: ControllerState, path: string): readonly ElementRecord[] {
  const inside = path === "" ? "" : `${path}/`;
  return [...state.indexes.deleting.keys()]
    .flatMap((uid) => state.elements.get(uid) ?? [])
    .filter((record) => (record.path === path || record.path.startsWith(inside)) && !state.uids.has(record.path))
    .sort((one, other) => state.elements.orderOf(one.uid) - state.elements.orderOf(other.uid));
}

function placed(
  tree: Json,
  [name, ...rest]: readonly string[],
  record: ElementRecord,
  state: ControllerState,
): JsonObject {
  const there = isObject(tree) ? tree : {};
  if (name === undefined) return { ...there, "x.type": record.type, $state: toJson(elementState(state, record)) };
  return { ...there, [name]: placed(there[name] ?? {}, rest, record, state) };
}

/** The document with "$state" in every element below `path`. */
function annotate(state: ControllerState, json: Json, path: string, isStuck: (record: ElementRecord) => boolean): Json {
  if (!isObject(json)) return json;
  const entries: [string, Json][] = Object.entries(json).map(([name, value]) => [
    name,
    // Attributes hold values, everything else may hold elements.
    name.startsWith("x.") ? value : annotate(state, value, path === "" ? name : `${path}/${name}`, isStuck),
  ]);
  const record = recordAt(state, elementPath(path));
  if (record !== undefined) {
    const own = elementState(state, record);
    entries.push(["$state", toJson(isStuck(record) ? { ...own, stuck: true } : own)]);
  }
  return Object.fromEntries(entries);
}

/** An element's state as the API shows it. */
function elementState(state: ControllerState, record: ElementRecord): ElementState {
  const { phase, causes, uid, allocation, range, name } = record;
  const common = {
    phase: phase ?? "waiting",
    ...told(causes),
    since: isoTime(record.since),
    uid,
  } as const;
  if (record.type === "VM") {
    const vm = state.vms.get(uid);
    const run = vm?.run ?? null;
    const power = run === null ? "off" : (actualVmOf(state, uid, run)?.power ?? "off");
    return { ...common, host: run?.host ?? null, incarnation: vm?.incarnation ?? 0, power, ...vmDetails(state, uid) };
  }
  if (record.type === "VirtualInterface") {
    const elastic = elasticAddressOf(state, record);
    return {
      ...common,
      address: addressOf(state, record),
      ...(elastic === null ? {} : { publicAddress: elastic }),
      mac: allocation?.mac ?? null,
      name,
    };
  }
  if (record.type === "Volume" || record.type === "VolumeCopy") {
    const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${uid}`);
    return { ...common, server: actual?.server ?? null, sizeMiB: trueSizeMiB(actual) };
  }
  if (record.type === "PoolHost") return { ...common, vms: vmsInPool(state, uid) };
  if (record.type === "CellController") {
    const services = actualOf(actualCell, state, cellManager, `cell/${uid}`)?.services;
    return services === undefined ? common : { ...common, services };
  }
  if (record.type !== "Subnet") return common;
  const actual = actualOf(actualSubnet, state, addressManager, `subnet/${uid}`);
  return {
    ...common,
    cidr: actual?.cidr ?? range?.cidr ?? null,
    gateway: actual?.gateway ?? range?.gateway ?? null,
  };
}

/**
 * Is a machine reached, as EC2 asks? By what its host says of it and of its probes, by Presence, by its disks, and in a mode of Eucalyptus by
 * what became of its address. No time makes it another one: who is not heard is not known. Undefined: it is not to run, or at no host yet.
 */
function reachabilityOf(state: ControllerState, uid: Uid): ElementState["reachability"] {
  const run = state.vms.get(uid)?.run ?? null;
  if (run === null || run.host === null || run.stage !== "running") return undefined;
  if (hostDied(state, run.host) !== null) return "impaired";
  const actual = actualVmOf(state, uid, run);
  if (state.reachable.get(hostPeer(run.host)) !== true || actual?.power !== "on") return "insufficient-data";
  const manager = storageManagerOf(state);
  const isAway = run.disks.some(
    ({ volume }) => actualOf(actualVolume, state, manager, `volume/${volume}`)?.available === false,
  );
  if (actual.health === "silent" || isAway) return "impaired";
  const instance = isOnMode(state) && run.interfaces.length > 0 ? instanceOf(state, uid) : null;
  if (instance?.phase !== undefined && instance.phase !== "ready") return "impaired";
  const isUnheard = instance === undefined || (instance !== null && state.reachable.get(networkViewManager) !== true);
  return actual.health === "starting" || isUnheard ? "insufficient-data" : "ok";
}

const countsAt = ({ host, incarnation, untilMs }: Rested): ElementState["countsAt"] & {} => ({
  host,
  incarnation,
  until: isoTime(untilMs),
});

/** What is only said of a VM when there is something to say. */
function vmDetails(
  state: ControllerState,
  uid: Uid,
): Pick<ElementState, "health" | "reachability" | "reboots" | "lastEnd" | "countsAt"> {
  const vm = state.vms.get(uid);
  const actual = vm?.run == null ? undefined : actualVmOf(state, uid, vm.run);
  const reachability = reachabilityOf(state, uid);
  return {
    ...(reachability === undefined ? {} : { reachability }),
    ...(actual?.health === undefined ? {} : { health: actual.health }),
    ...(actual?.reboots === undefined ? {} : { reboots: actual.reboots }),
    ...(vm?.lastEnd === undefined ? {} : { lastEnd: vm.lastEnd }),
    ...(vm?.rested === undefined ? {} : { countsAt: countsAt(vm.rested) }),
  };
}
