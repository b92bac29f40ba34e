import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { onlyKnown } from "../../../model/testing/case-folders.testing.ts";
import { type Circumstances, decide, type Move, type Since } from "../decide.ts";
import { merge } from "../investigators/investigator.ts";
import { lossTypes, orderlyTypes, type Step, steps } from "../item.ts";
import { decideOrderly, type OrderlyCircumstances, type OrderlyMove } from "../orderly/decide.ts";
import { reportOf } from "../people/report.ts";
import { member, World } from "../world.testing.ts";

/*
 * Circumstances of this manager made of what a case gives, and its outcomes in the words of the cases. What it knows nothing of it says: a field that
 * is passed over would make a case pass that was never tried.
 */

export type Given = Readonly<Record<string, unknown>>;
export type Outcome = Readonly<Record<string, unknown>>;
interface Group {
  /** What it knows to make something of. */
  readonly fields: readonly string[];
  outcomeOf(given: Given): Outcome;
}

function oneOf<const T extends string | boolean | null>(field: string, value: unknown, all: readonly T[]): T {
  const found = all.find((each) => each === value);
  if (found === undefined) throw new Error(`the runner knows nothing of ${field}: ${JSON.stringify(value)}`);
  return found;
}
const listOf = (field: string, value: unknown): readonly unknown[] => {
  if (Array.isArray(value)) return value;
  throw new Error(`the runner knows nothing of ${field}: ${JSON.stringify(value)}`);
};

const usual: Circumstances = {
  since: "same",
  lost: "restart",
  isHostLost: true,
  state: "Unknown",
  isFenced: false,
  isAsking: false,
  isHeld: false,
  isCancelled: false,
  isolated: "keep",
  isVetoedLong: false,
};
const usualOrderly: OrderlyCircumstances = {
  since: "same",
  isWanted: true,
  isStopping: false,
  isHostLost: false,
  power: "on",
  areTriesUsed: false,
};

const hostWords = ["Up", "not Up", "Down", "Alert", "Disconnected"] as const;
const isUp = (host: unknown): boolean => oneOf("host", host, hostWords) === "Up";
function sinceOf({ vm, vmSinceScheduled, vmNowOn, vmOnHostRecord }: Given): Since {
  if (vm !== undefined && oneOf("vm", vm, ["known", "unknown", null]) !== "known") return "gone";
  const hasMoved = vmNowOn !== undefined && vmNowOn !== vmOnHostRecord;
  return vmSinceScheduled !== undefined || hasMoved ? "later" : "same";
}
/** Investigators that know nothing say nothing, or that. */
const stateOf = (answer: unknown) =>
  answer === null ? "Unknown" : oneOf("answer", answer, ["Running", "Stopped", "Unknown"]);
function isFencedBy({ fenced = false, fencers = [] }: Given): boolean {
  const said = listOf("fencers", fencers).map((each) => oneOf("fencers", each, [true, false, null]));
  return oneOf("fenced", fenced, [true, false]) || said.includes(true);
}

function lossOutcome(given: Given): Outcome {
  const asksFencers = given.fenced !== undefined || given.fencers !== undefined;
  const isPutBack = given.handlerAsks !== undefined && oneOf("handlerAsks", given.handlerAsks, ["retry"]) === "retry";
  const first = asksFencers ? "Fencing" : isPutBack ? "Investigating" : "Scheduled";
  const step = oneOf("step", given.step ?? first, steps);
  const so: Circumstances = {
    ...usual,
    since: sinceOf(given),
    isHostLost: given.host === undefined || !isUp(given.host),
    state: stateOf(given.answer ?? null),
    isFenced: isFencedBy(given),
    isAsking: isPutBack,
    // One item is worked on at a time: another one is held up by it.
    isHeld: given.otherItemOfSameVm !== undefined,
  };
  // What is scheduled is looked into at once, unless it waits for another one.
  const move = step === "Scheduled" && so.isHeld ? decide("Investigating", so) : decide(step, so);
  return wordsOf(step, move);
}

function wordsOf(step: Step, move: Move | null): Outcome {
  // Nobody has fenced it: it is tried again, and somebody is told.
  if (move === null && step === "Fencing") return { do: "retry", after: "restart.retry.interval", alert: true, step };
  if (move === null) return { do: "retry", after: "investigate.retry.interval", step: "Scheduled" };
  if (move.to === "Cancelled") return { do: "drop", step: "Cancelled", cancelled: true };
  if (move.to === "Done") return { do: "end", step: "Done" };
  // Over: stopped for good, released, and started in the ordinary way.
  if (move.to === "Restarting" && step === "Fencing") return { do: "forceStop", step: "Scheduled", fenced: true };
  return { do: "continue", step: move.to, fenced: move.to === "Restarting" };
}

const triesOf = ({ timesTried, "max.retries": most = 5 }: Given): boolean => {
  if (timesTried === undefined) return false;
  if (typeof timesTried === "number" && typeof most === "number") return timesTried >= most;
  throw new Error(`the runner knows nothing of timesTried: ${JSON.stringify([timesTried, most])}`);
};

function orderlyOutcome(given: Given): Outcome {
  const type = oneOf("type", given.type, orderlyTypes);
  if (given.handlerAsks !== undefined) oneOf("handlerAsks", given.handlerAsks, ["retry"]);
  const step = oneOf("step", given.step ?? (type === "Migration" ? "Scheduled" : "Stopping"), steps);
  const move: OrderlyMove | null = decideOrderly(type, step, {
    ...usualOrderly,
    since: sinceOf(given),
    isHostLost: given.host !== undefined && !isUp(given.host),
    areTriesUsed: triesOf(given),
  });
  // Theirs is put back into the queue; ours is looked at again where it is.
  if (move === null)
    return {
      do: "retry",
      step: "Scheduled",
      after: type === "Migration" ? "migrate.retry.interval" : "stop.retry.interval",
    };
  if (move.to === "Cancelled") return { do: "drop", step: "Cancelled", cancelled: true };
  return move.to === "Done"
    ? { do: "end", step: "Done", ...(move.gaveUp === true ? { gaveUp: true, alert: true } : {}) }
    : { do: "continue", step: move.to };
}

function itemOutcome(given: Given): Outcome {
  const type = oneOf("type", given.type ?? "HA", [...lossTypes, ...orderlyTypes]);
  return orderlyTypes.some((each) => each === type) ? orderlyOutcome(given) : lossOutcome(given);
}
/** Nothing else is asked than whether its reason has gone: else it goes on from where it is. */
function cancelOutcome(given: Given): Outcome {
  const { cancelled = false } = itemOutcome(given);
  return { cancelled, step: cancelled === true ? "Cancelled" : given.step };
}

/** Machines of the cloud itself are the root cell's. */
const cellOf = (machine: unknown): string =>
  oneOf("vmsOnHost", machine, ["user VM", "router", "console proxy", "secondary storage VM", "system VM"]) === "user VM"
    ? "shop"
    : "root";

function hostDownOutcome(given: Given): Outcome {
  const world = new World(5);
  const { vmOnHostRecord, vmNowOn = vmOnHostRecord, host } = given;
  const machines = vmOnHostRecord === undefined ? listOf("vmsOnHost", given.vmsOnHost ?? ["user VM"]) : ["user VM"];
  const isProtected = given["vm.ha.enabled"] !== false && given.haEnabled !== false && given.vmHaEnabled !== false;
  const lost = isProtected ? "restart" : "leave";
  for (const [index, machine] of machines.entries())
    world.protect(`vm-${index}`, 1, String(vmOnHostRecord ?? "h1"), cellOf(machine), { lost });
  if (vmNowOn !== vmOnHostRecord) world.protect("vm-0", 2, String(vmNowOn), "shop", { lost });
  const isLost = host === undefined || !isUp(host);
  const effects = isLost ? lose(world, String(vmOnHostRecord ?? "h1")) : [];
  const scheduled = effects.flatMap(({ vm }) => machines[Number(String(vm).slice("vm-".length))] ?? []);
  return { scheduled };
}
/** What is scheduled when a host is declared dead, in order. */
function lose(world: World, host: string): readonly JsonObject[] {
  const value = { host: hostName(host), generation: 1, incarnation: 0, declaredAt: 0, reporters: 3 };
  const effects = world.give({ kind: "actual", from: member, key: `dead/${host}`, value });
  return effects.flatMap((effect) =>
    effect.kind === "log" && effect.event === "ha/scheduled" ? [effect.fields as JsonObject] : [],
  );
}

function scheduleOutcome(given: Given): Outcome {
  const type = oneOf("type", given.type, [...lossTypes, ...orderlyTypes]);
  const world = new World(5);
  const hasHost = given.vmOn !== null;
  if (hasHost && given.vmOn !== undefined) oneOf("vmOn", given.vmOn, ["a host"]);
  if (hasHost) ask[type](world);
  return { accepted: reportOf(world.state).items.some((item) => item.type === type) };
}
const protectAs = (more: JsonObject) => (world: World) => world.protect("vm-0", 1, "h1", "shop", more);
const lostAs = (more: JsonObject) => (world: World) => {
  protectAs(more)(world);
  world.lose("h1");
};
const ask: Readonly<Record<(typeof lossTypes)[number] | (typeof orderlyTypes)[number], (world: World) => void>> = {
  HA: lostAs({}),
  Stop: lostAs({ lost: "end" }),
  Destroy: lostAs({ lost: "end", deleted: true }),
  Migration: protectAs({ leaves: true }),
  ForceStop: protectAs({ lost: "end", forced: true }),
  CheckStop: (world) => {
    const host = peerName("host.h1");
    world.give({ kind: "reachable", peer: host, reachable: true });
    protectAs({ lost: "end" })(world);
    const machines = [{ vm: "vm-0", incarnation: 1, power: "on" }];
    world.give({ kind: "actual", from: host, key: "machines", value: { host: "h1", boot: 7, machines } });
    for (let looks = 0; looks < 3; looks += 1) {
      world.ms += 60_000;
      world.give({ kind: "timer", name: "compare" });
    }
  },
};

/** What investigators say of a host is asked of its machines here: of one that is up they run, of one that is down they have ended. */
function investigateOutcome({ investigators }: Given): Outcome {
  const answers = listOf("investigators", investigators).map((said) => {
    const state = said === null ? "Unknown" : oneOf("investigators", said, ["Up", "Down", "Unknown"]);
    return { state: state === "Up" ? "Running" : state === "Down" ? "Stopped" : "Unknown", sentence: "" } as const;
  });
  return { hostStatus: { Running: "Up", Stopped: "Down", Unknown: null }[merge(answers)] };
}

const zone = ["vm.ha.enabled", "force.ha", "vmHaEnabled"] as const;
const item = [
  ...[
    "vm",
    "type",
    "step",
    "otherItemOfSameVm",
    "vmSinceScheduled",
    "vmNowOn",
    "vmOnHostRecord",
    "answer",
    "host",
    "fenced",
  ],
  ...["fencers", "reason", "timesTried", "max.retries", "handlerAsks", "startError", "planner", ...zone],
];
const groups: Readonly<Record<string, Group>> = {
  restart: { fields: item, outcomeOf: itemOutcome },
  process: { fields: item, outcomeOf: itemOutcome },
  cancel: { fields: item, outcomeOf: cancelOutcome },
  hostDown: {
    fields: ["vmsOnHost", "haEnabled", "vmOnHostRecord", "vmNowOn", "hypervisor", "host", ...zone],
    outcomeOf: hostDownOutcome,
  },
  schedule: { fields: ["type", "vmOn", ...zone], outcomeOf: scheduleOutcome },
  investigateHost: { fields: ["investigators", ...zone], outcomeOf: investigateOutcome },
};

const reasons = ["HostDown", "HostMaintenance", "HostDegraded"];
/** Why there is nothing to compare; null: there is. */
export function notHere(group: string, given: Given): string | null {
  if (given.hypervisor !== undefined && given.hypervisor !== "KVM") return "other hypervisors";
  if (["schedule", "investigateHost"].includes(group) && given["vm.ha.enabled"] === false)
    return "a switch for all: whose VMs are started again, they say themselves";
  if ("startError" in given || "planner" in given)
    return "starts, their errors and their back-off are the controller's";
  if (given.reason !== undefined && !reasons.some((each) => each === given.reason)) return "other reasons than a host";
  // Ours does not stay there: what is scheduled is looked into at once.
  if (group === "cancel" && given.step === "Scheduled") return "waiting before anybody looks";
  if (triesOf(given) && given.type !== "CheckStop")
    return "but for a stop no item is given up: what it waits for, it says";
  // Theirs is stopped and left; here it is left alone from the start (decision 91).
  return group !== "hostDown" && given.vmHaEnabled === false
    ? "one that is not started again waits for its host"
    : null;
}

/** @throws where something is given of which it knows nothing */
export function check(group: string, given: Given): Group {
  const known = groups[group];
  if (known === undefined) throw new Error(`the runner knows nothing of group ${group}`);
  onlyKnown(`group ${group}`, given, known.fields);
  return known;
}
export const outcomeOf = (group: string, given: Given): Outcome => check(group, given).outcomeOf(given);
