import { type HostName, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { smallestVm } from "../../../model/cell/schema.ts";
import { mostFailures, rebalanceGoals } from "../../../model/contract/operator/placement.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import type { PlacerState, Wanted } from "../state.ts";
import { capacityOf } from "./capacity.ts";
import { faultsOf } from "./check-moves.ts";
import type { Asks } from "./question.ts";
import { rebalance } from "./rebalance.ts";
import type { Sliced } from "./sliced.ts";
import { thought } from "./thought.ts";
import { trialOf } from "./trial.ts";

/**
 * What the operator asks of a Placer that changes nothing: `{kind: "capacity", like | memoryMiB, cpus, failures}`, `{kind: "rebalance", goal, host}` or `{kind: "try", vm, host}`, each word a text as in a query. What is
 * wrong with it is the answer's `error`, at once; else how the answer is worked out. Null: it asks for something else.
 */
export function whatIf(state: PlacerState, request: Json): JsonObject | Asks | null {
  if (!isObject(request)) return null;
  const wordOf = (name: string): string | null => {
    const value = request[name];
    return typeof value === "string" ? value : null;
  };
  if (request.kind === "capacity") return capacityAsked(state, wordOf);
  if (request.kind === "try") return trialAsked(state, wordOf);
  return request.kind === "rebalance" ? rebalanceAsked(state, wordOf) : null;
}

type WordOf = (name: string) => string | null;
function capacityAsked(state: PlacerState, wordOf: WordOf): JsonObject | Asks {
  const failures = wordOf("failures") === null ? state.spareHosts : numberIn(wordOf("failures"), 0, mostFailures);
  if (failures === null) return { error: `failures are a whole number up to ${mostFailures}` };
  const like = wordOf("like");
  const asked = like === null ? plain(wordOf) : null;
  if (asked === null && like === null)
    return { error: `memoryMiB is a whole number from ${smallestVm.memoryMiB}, and cpus one from ${smallestVm.cpus}` };
  return function* (): Sliced<Json> {
    const wanted = asked ?? (yield* wantedAs(state, like ?? ""));
    // A VM that is off, or another Placer's.
    if (wanted === null) return { unknown: true };
    const { memoryMiB, cpus } = wanted.document;
    return toJson({ like, memoryMiB, cpus, ...(yield* capacityOf(state, wanted, failures)) });
  };
}

function rebalanceAsked(state: PlacerState, wordOf: WordOf): JsonObject | Asks {
  const goal = rebalanceGoals.find((each) => each === wordOf("goal"));
  if (goal === undefined) return { error: `the goal is ${rebalanceGoals.join(", ")}` };
  const host = wordOf("host");
  if ((goal === "empty") !== (host !== null))
    return { error: 'a host is named with the goal "empty", and with no other' };
  const named = hostNamed(state, host);
  if (named !== null && typeof named !== "string") return named;
  return function* (): Sliced<Json> {
    // Moves are made in its usage; its reservations, by which the checker goes, stay as they are.
    const copy = yield* thought(state);
    const plan = yield* rebalance(copy, { goal, host: named });
    const faults = yield* faultsOf(copy, plan.moves);
    return faults.length === 0 ? toJson(plan) : { wrong: faults[0] ?? "" };
  };
}

function trialAsked(state: PlacerState, wordOf: WordOf): JsonObject | Asks {
  const vm = wordOf("vm");
  if (vm === null) return { error: "say the path of a VM as `vm`" };
  const only = hostNamed(state, wordOf("host"));
  if (only !== null && typeof only !== "string") return only;
  return function* (): Sliced<Json> {
    const wanted = yield* wantedAs(state, vm);
    return wanted === null ? { unknown: true } : toJson(yield* trialOf(state, wanted, { vm, only }));
  };
}
/** Null: none is named. */
function hostNamed(state: PlacerState, host: string | null): HostName | { readonly error: string } | null {
  if (host === null) return null;
  const known = [...state.hosts.values()].map((view) => view.host);
  return known.find((each) => each === host) ?? { error: `there is no host ${host}: there are ${known.join(", ")}` };
}

const mostAsked = 2 ** 40;
function numberIn(word: string | null, least: number, most: number): number | null {
  if (word === null || !/^\d{1,13}$/.test(word)) return null;
  const value = Number(word);
  return value >= least && value <= most ? value : null;
}

/** The VM that people call so: its cell's whole name, and its path within. */
function* wantedAs({ wanted }: PlacerState, name: string): Sliced<Wanted | null> {
  for (const each of wanted.values()) {
    yield 0.1;
    const { cell, path } = each.document;
    if ([cell, ...path.split("/").slice(1)].join("/") === name) return each;
  }
  return null;
}

/** One that asks for nothing but room, of nobody's. */
function plain(wordOf: WordOf): Wanted | null {
  const [memoryMiB, cpus] = [
    numberIn(wordOf("memoryMiB"), smallestVm.memoryMiB, mostAsked),
    numberIn(wordOf("cpus") ?? "1", smallestVm.cpus, mostAsked),
  ];
  if (memoryMiB === null || cpus === null) return null;
  const document: DesiredPlacement = {
    vm: "capacity" as Uid,
    path: "any/vm" as never,
    cell: "any" as never,
    incarnation: 1,
    memoryMiB,
    cpus,
    cpuSpeedMHz: 0,
    placement: {},
  };
  return { client: nobodys, document };
}
/** No cell is called so. */
const nobodys: PeerName = peerName("controller.");
