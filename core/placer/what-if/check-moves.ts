import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { Move } from "../../../model/contract/operator/placement.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import type { HostView } from "../candidate.ts";
import type { PlacerState } from "../state.ts";
import type { Sliced } from "./sliced.ts";

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
  /** Of Eucalyptus, that its cell has; absent: Diverter's alone. */
  readonly networkMode?: string;
  /** What it boots from, where it asks for a pool; absent: nothing with a name. */
  readonly image?: string;
}
const texts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");

/** What is wrong with a plan, by the number of its move; nothing: each is lawful when its turn comes. */
export function* faultsOf(state: PlacerState, moves: readonly Move[]): Sliced<readonly string[]> {
  const vms = yield* vmsOf(state);
  const byHost = new Map<HostName, Set<Vm>>();
  for (const vm of vms.values()) {
    byHost.set(vm.host, (byHost.get(vm.host) ?? new Set()).add(vm));
    yield littleAs;
  }
  const views = new Map([...state.hosts.values()].map((view) => [view.host, view]));
  const found: string[] = [];
  for (const [at, { uid, from, to }] of moves.entries()) {
    const vm = vms.get(uid);
    const say = (fault: string): unknown => found.push(`move ${at + 1}: ${fault}`);
    if (vm === undefined) say(`there is no VM ${uid}`);
    else if (vm.host !== from) say(`${vm.path} is at ${vm.host}`);
    else if (from === to) say(`${vm.path} is there already`);
    else {
      const there = [...(byHost.get(to) ?? [])];
      const isInGroups = texts(vm.wishes.groups).length > 0;
      const all = isInGroups ? [...vms.values()] : [];
      for (const fault of faultsAt(state, { view: views.get(to), there, all }, vm))
        say(`${vm.path} to ${to}: ${fault}`);
      if (isStrict(vm) && !vm.isSystem && isLastLeft(state, byHost, vm, to))
        say(`${vm.path} to ${to}: it is one of the last that are left to the cloud's own VMs`);
      yield all.length * littleAs;
      byHost.get(from)?.delete(vm);
      vm.host = to;
      byHost.set(to, (byHost.get(to) ?? new Set()).add(vm));
    }
    yield 1;
  }
  return found;
}
/** What takes a small part of the time in which a host is looked at. */
const littleAs = 0.1;

function* vmsOf({ reservations, wanted, usage, owners }: PlacerState): Sliced<Map<Uid, Vm>> {
  const all = new Map<Uid, Vm>();
  const accountOf = (client: string): string | null =>
    owners.get((client.split(".").at(-1) ?? "") as never) ??
    owners.get(client.slice("controller.".length) as never) ??
    null;
  for (const [vm, { client, host, path, cell, memoryMiB, cpus }] of reservations) {
    yield littleAs;
    const document = wanted.get(vm)?.document;
    const wishes = isObject(document?.placement) ? document.placement : {};
    const isSystem = client === "controller.root";
    const speed = document?.cpuSpeedMHz ?? 0;
    const mode = document?.networkMode === undefined ? {} : { networkMode: document.networkMode };
    const image = document?.image === undefined ? {} : { image: document.image };
    const whose = { account: accountOf(client), isSystem };
    all.set(vm, { vm, host, path, cell, memoryMiB, cpus, speed, ...whose, wishes, ...mode, ...image });
  }
  for (const [host, { taken }] of usage)
    for (const [vm, { memoryMiB, cpus, by, terms }] of taken) {
      yield littleAs;
      if (all.has(vm)) continue;
      const wishes: JsonObject = terms?.implicit === undefined ? {} : { dedication: terms.implicit };
      const whose = { account: by === undefined ? null : accountOf(by), isSystem: by === "controller.root" };
      all.set(vm, { vm, host, path: vm, cell: "", memoryMiB, cpus, speed: 0, ...whose, wishes });
    }
  return all;
}

interface Target {
  readonly view: HostView | undefined;
  readonly there: readonly Vm[];
  /** Everywhere; of a VM that is in no group nobody. */
  readonly all: readonly Vm[];
}
function faultsAt(state: PlacerState, { view, there, all }: Target, vm: Vm): readonly string[] {
  const actual = view?.actual ?? null;
  if (view === undefined || actual === null || !view.reachable) return ["nobody hears the host"];
  const faults: string[] = [];
  const { machineMiB = 0, memoryMiB, reservedMiB, cpus } = actual;
  let [neededMiB, neededCpus] = [0, 0];
  for (const each of [...there, vm]) {
    if (each.memoryMiB > 0) neededMiB += each.memoryMiB + (each.memoryMiB < 256 ? 1 : 2) * machineMiB;
    neededCpus += each.cpus;
  }
  const share = Math.min(state.ratios.memory, (view.pooled?.pool?.memoryPercent ?? 100) / 100);
  if (neededMiB > Math.floor((memoryMiB - reservedMiB) * share)) faults.push("it has no memory for it");
  const ratio = Math.min(state.ratios.cpu, view.pooled?.pool?.cpuRatio ?? state.ratios.cpu);
  if (neededCpus > Math.floor(cpus * ratio)) faults.push("it has no processors for it");
  if (actual.state !== "up" || view.closed !== undefined) faults.push("it takes no VMs");
  if (vm.speed > actual.cpuSpeedMHz) faults.push("it is too slow");
  if (vm.networkMode !== undefined && actual.networkMode !== vm.networkMode)
    faults.push(`its cell is of the mode ${vm.networkMode}, which the host does not offer`);
  const { host, tags, dedication, zone, pod, cluster, properties } = vm.wishes;
  if (typeof host === "string" && host !== view.host) faults.push("it asks for another host");
  if (texts(tags).some((tag) => !(view.marks?.tags ?? []).includes(tag))) faults.push("it asks for other tags");
  if (typeof zone === "string" && view.marks?.cluster?.split("/")[0] !== zone) faults.push("it asks for another zone");
  // A wish is one name, or all from the zone down.
  const stands = view.marks?.cluster?.split("/") ?? [];
  const isAt = (wish: Json | undefined, depth: number): boolean =>
    typeof wish !== "string" ||
    (wish.includes("/") ? wish === stands.slice(0, depth + 1).join("/") : wish === stands[depth]);
  if (!isAt(pod, 1)) faults.push("it asks for another pod");
  if (!isAt(cluster, 2)) faults.push("it asks for another cluster");
  for (const [name, asked] of Object.entries(isObject(properties) ? properties : {})) {
    const has = view.marks?.properties?.[name];
    if (typeof asked === "number" ? !(typeof has === "number" && has >= asked) : has !== asked)
      faults.push(`it asks for another ${name}`);
  }
  const owner = view.rule?.to;
  if (owner !== undefined && !vm.isSystem) {
    const isIts =
      owner.kind === "account" ? vm.account === owner.path : (vm.account ?? "").startsWith(`${owner.path}/`);
    if (!isIts) faults.push("it is somebody else's");
  }
  const apart = there.some((each) => each.isSystem || each.account === null || each.account !== vm.account);
  if (dedication === "strict" && !vm.isSystem && apart) faults.push("others are there, and it is strict");
  if (there.some((each) => isStrict(each) && (each.account === null || each.account !== vm.account)) && !vm.isSystem)
    faults.push("somebody strict is there");
  const byWhose = vm.isSystem
    ? []
    : [...poolFaults(view, vm), ...dedicationFaults(view, vm), ...tagFaults(view, there, vm)];
  return [...faults, ...byWhose, ...groupFaults(state, all, vm, view.host), ...pathFaults(there, vm)];
}
const isStrict = ({ wishes }: Vm): boolean => wishes.dedication === "strict";

/** Which pool it asks for, whether that takes it, and whether it is one that its owner wants there. */
function poolFaults({ pooled }: HostView, { wishes, cell, account, image }: Vm): readonly string[] {
  const [asked, there] = [wishes.pool, pooled?.pool ?? null];
  if (asked === undefined) return pooled === undefined ? [] : ["it is of a flavour, and the VM asks for no pool"];
  if (there === null) return ["it is in no pool"];
  const within = [there.path as string, there.path.split("/").slice(1).join("/")];
  const isThis = asked === there.uid || (there.cell === cell && typeof asked === "string" && within.includes(asked));
  if (!isThis) return ["it is in another pool"];
  const faults: string[] = [];
  if (!there.enabled) faults.push("its pool has disabled it");
  if (account === null || !there.authorised.includes(account)) faults.push("its pool is not for that account");
  if (there.offerings?.some((name) => name === wishes.offering) === false)
    faults.push("its pool takes other offerings");
  if (there.images?.some((name) => name === image) === false) faults.push("its pool takes other images");
  return faults;
}

/** Who asks for dedicated hosts stands at those of that owner, and who asks for none at none, a zone of his own apart. */
function dedicationFaults({ rule }: HostView, { wishes }: Vm): readonly string[] {
  const [asked] = texts(wishes.groups).filter((name) => name.startsWith("DedicatedGrp-"));
  const last = rule?.to.path.split("/").at(-1);
  const its = rule === undefined ? null : `DedicatedGrp-${rule.to.kind === "domain" ? "domain-" : ""}${last}`;
  if (asked !== undefined) return asked === its ? [] : [`it asks for hosts of ${asked}`];
  return rule === undefined || rule.level === "zone" ? [] : ["it is dedicated, and the VM does not ask for that"];
}

/** With tags: implicit at its own or an empty host, explicit at a dedicated one, else at one that is neither. */
function tagFaults({ rule }: HostView, there: readonly Vm[], { wishes, account }: Vm): readonly string[] {
  if (texts(wishes.tags).length === 0) return [];
  const isOwn = there.every((each) => each.account === account && each.wishes.dedication !== undefined);
  if (wishes.dedication !== undefined)
    return isOwn ? [] : ["it asks for tags at a host of its own, and others are there"];
  if (texts(wishes.groups).some((name) => name.startsWith("DedicatedGrp-"))) return [];
  const isHeld = rule !== undefined || (there.length > 0 && isOwn);
  return isHeld ? ["it asks for tags at a host that is nobody's, and it is held"] : [];
}

/** Would fewer hosts be open to the cloud's own VMs by it than are to be left? */
function isLastLeft(
  { hosts, settings }: PlacerState,
  byHost: ReadonlyMap<HostName, ReadonlySet<Vm>>,
  vm: Vm,
  to: HostName,
): boolean {
  let [open, before, after] = [0, 0, 0];
  for (const { host, closed, pooled, reachable, actual } of hosts.values()) {
    if (closed !== undefined || pooled !== undefined) continue;
    open += 1;
    if (!reachable || actual?.state !== "up") continue;
    const strict = [...(byHost.get(host) ?? [])].filter(isStrict);
    if (strict.length === 0) before += 1;
    if (host !== to && strict.every((each) => each === vm)) after += 1;
  }
  return after < before && after < (settings.systemHosts ?? (open > 4 ? 1 : 0));
}

function groupFaults({ groups }: PlacerState, vms: readonly Vm[], vm: Vm, to: HostName): readonly string[] {
  const own = new Set(vms.flatMap(({ account, cell }) => (account === vm.account ? [`controller.${cell}`] : [])));
  return texts(vm.wishes.groups).flatMap((name) => {
    const kind = [...groups.values()].find(({ document, client }) => document.name === name && own.has(client))
      ?.document.kind;
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
