import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { Move } from "../../../model/contract/operator/placement.ts";
import { isObject, type JsonObject } from "../../../model/json/json.ts";
import type { PlacerState } from "../state.ts";

/*
 * Looks at a plan of moves anew, one after the other, from what hosts and cells have said. It shares no code with whoever makes plans, nor with the filters
 * that place: sums are made by going over all that is there.
 */
interface Vm {
  readonly vm: Uid;
  host: HostName;
  readonly path: string;
  readonly cell: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly speed: number;
  /** Null: nobody's who is known. */
  readonly account: string | null;
  readonly isSystem: boolean;
  readonly wishes: JsonObject;
}
const texts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");

/** What is wrong with a plan, by the number of its move; nothing: each is lawful when its turn comes. */
export function faultsOf(state: PlacerState, moves: readonly Move[]): readonly string[] {
  const vms = vmsOf(state);
  return moves.flatMap(({ uid, from, to }, at) => {
    const vm = vms.get(uid);
    if (vm === undefined) return [`move ${at + 1}: there is no VM ${uid}`];
    if (vm.host !== from) return [`move ${at + 1}: ${vm.path} is at ${vm.host}`];
    if (from === to) return [`move ${at + 1}: ${vm.path} is there already`];
    const faults = faultsAt(state, [...vms.values()], vm, to);
    vm.host = to;
    return faults.map((fault) => `move ${at + 1}: ${vm.path} to ${to}: ${fault}`);
  });
}

function vmsOf({ reservations, wanted, usage, owners }: PlacerState): Map<Uid, Vm> {
  const all = new Map<Uid, Vm>();
  const accountOf = (client: string): string | null =>
    owners.get((client.split(".").at(-1) ?? "") as never) ??
    owners.get(client.slice("controller.".length) as never) ??
    null;
  for (const [vm, { client, host, path, cell, memoryMiB, cpus }] of reservations) {
    const document = wanted.get(vm)?.document;
    const wishes = isObject(document?.placement) ? document.placement : {};
    const isSystem = client === "controller.root";
    const speed = document?.cpuSpeedMHz ?? 0;
    all.set(vm, { vm, host, path, cell, memoryMiB, cpus, speed, account: accountOf(client), isSystem, wishes });
  }
  for (const [host, { taken }] of usage)
    for (const [vm, { memoryMiB, cpus, by, terms }] of taken) {
      if (all.has(vm)) continue;
      const wishes: JsonObject = terms?.implicit === undefined ? {} : { dedication: terms.implicit };
      const whose = { account: by === undefined ? null : accountOf(by), isSystem: by === "controller.root" };
      all.set(vm, { vm, host, path: vm, cell: "", memoryMiB, cpus, speed: 0, ...whose, wishes });
    }
  return all;
}

function faultsAt(state: PlacerState, vms: readonly Vm[], vm: Vm, to: HostName): readonly string[] {
  const view = [...state.hosts.values()].find(({ host }) => host === to);
  const actual = view?.actual ?? null;
  if (view === undefined || actual === null || !view.reachable) return ["nobody hears the host"];
  const faults: string[] = [];
  const there = vms.filter((each) => each.host === to && each.vm !== vm.vm);
  const { machineMiB = 0, memoryMiB, reservedMiB, cpus } = actual;
  let [neededMiB, neededCpus] = [0, 0];
  for (const each of [...there, vm]) {
    if (each.memoryMiB > 0) neededMiB += each.memoryMiB + (each.memoryMiB < 256 ? 1 : 2) * machineMiB;
    neededCpus += each.cpus;
  }
  if (neededMiB > Math.floor((memoryMiB - reservedMiB) * state.ratios.memory)) faults.push("it has no memory for it");
  const ratio = Math.min(state.ratios.cpu, view.pooled?.pool?.cpuRatio ?? state.ratios.cpu);
  if (neededCpus > Math.floor(cpus * ratio)) faults.push("it has no processors for it");
  if (actual.state !== "up" || view.closed !== undefined) faults.push("it takes no VMs");
  if (vm.speed > actual.cpuSpeedMHz) faults.push("it is too slow");
  const { host, tags, dedication, pool, zone } = vm.wishes;
  if (typeof host === "string" && host !== to) faults.push("it asks for another host");
  if (texts(tags).some((tag) => !(view.marks?.tags ?? []).includes(tag))) faults.push("it asks for other tags");
  if (typeof zone === "string" && view.marks?.cluster?.split("/")[0] !== zone) faults.push("it asks for another zone");
  if ((view.pooled !== undefined) !== (pool !== undefined) && !vm.isSystem) faults.push("it is of a pool, or of none");
  const owner = view.rule?.to;
  if (owner !== undefined && !vm.isSystem) {
    const isIts =
      owner.kind === "account" ? vm.account === owner.path : (vm.account ?? "").startsWith(`${owner.path}/`);
    if (!isIts) faults.push("it is somebody else's");
  }
  const isStrict = ({ wishes }: Vm): boolean => wishes.dedication === "strict";
  const apart = there.some((each) => each.isSystem || each.account === null || each.account !== vm.account);
  if (dedication === "strict" && !vm.isSystem && apart) faults.push("others are there, and it is strict");
  if (there.some((each) => isStrict(each) && (each.account === null || each.account !== vm.account)) && !vm.isSystem)
    faults.push("somebody strict is there");
  return [...faults, ...groupFaults(state, vms, vm, to), ...pathFaults(there, vm)];
}

function groupFaults({ groups }: PlacerState, vms: readonly Vm[], vm: Vm, to: HostName): readonly string[] {
  return texts(vm.wishes.groups).flatMap((name) => {
    const kind = [...groups.values()].find(
      ({ document, client }) =>
        document.name === name &&
        vms.some((each) => each.account === vm.account && client === `controller.${each.cell}`),
    )?.document.kind;
    const others = vms.filter(
      (each) => each.vm !== vm.vm && each.account === vm.account && texts(each.wishes.groups).includes(name),
    );
    if (kind === "host anti-affinity" && others.some(({ host }) => host === to)) return [`another of ${name} is there`];
    if (kind === "host affinity" && others.some(({ host }) => host !== to)) return [`others of ${name} are elsewhere`];
    return [];
  });
}

/** Each of two that one of them wants apart. */
function pathFaults(there: readonly Vm[], vm: Vm): readonly string[] {
  const names = (who: Vm, whom: Vm): boolean =>
    who.cell === whom.cell &&
    texts(who.wishes.apartFrom).some((path) => path === whom.path || `${who.path.split("/")[0]}/${path}` === whom.path);
  return there.filter((other) => names(vm, other) || names(other, vm)).map(({ path }) => `it is apart from ${path}`);
}
