import { parseNetwork } from "../../../model/addresses/addresses.ts";
import type { Cell, Element } from "../../../model/cell/cell.ts";
import { type ElementPath, elementPath, type Uid } from "../../../model/cell/identifiers.ts";
import { checkRules } from "../../../model/check/network/check-rules.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Json } from "../../../model/json/json.ts";
import { identify } from "../../../model/plan/identity.ts";
import { planInSlices } from "../../../model/plan/plan.ts";
import { planFaultsInSlices } from "../../../model/plan/plan-check.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { type InSlices, inOneGo } from "../../../model/slices.ts";
import { log } from "../../outbox.ts";
import { finish, heldBack } from "../changes/slices.ts";
import type { Work } from "../changes/work.ts";
import { managementRefusals } from "../network/management.ts";
import { foreignNetworks } from "../references/foreign.ts";
import { dedicationRefusals } from "../services/dedications.ts";
import { hostRefusals } from "../services/hosts.ts";
import { ownVmRefusals } from "../services/own-vm.ts";
import { poolRefusals } from "../services/pools/refusals.ts";
import { type ControllerState, recordAt, saveCounters, saveElement, saveModel, saveVm } from "../state.ts";
import { withKept } from "../upgrade/former-images.ts";
import { beginUpgrades, notesForUpgrade, serviceBootVolumes } from "../upgrade/upgrade.ts";
import { stopRun } from "../vm/life-cycle.ts";
import { presentFor, sizeRefusals } from "../volumes/growth.ts";
import { holdFaults, holdRefusals } from "../volumes/hold-refusals.ts";
import { heldIn, holdsOf } from "../volumes/holds.ts";
import { type Asked, auditDone } from "./audited.ts";
import { accountRefusals } from "./owners.ts";
import { createGrants } from "./quota.ts";
import { keepVersion } from "./versions/versions.ts";

export const planFor = (state: ControllerState, cell: Cell | null): InSlices<Plan> =>
  planInSlices(presentFor(state, cell), cell, unwrittenIn(state), heldIn(state));

/** Volumes of the model that were never anybody's to write, or whose writer kept nothing there. */
const unwrittenIn = (state: ControllerState): ReadonlySet<ElementPath> =>
  new Set([
    ...[...state.elements.values()].flatMap(({ path, unwritten, deleting }) =>
      unwritten === true && !deleting ? [path] : [],
    ),
    ...serviceBootVolumes(state),
  ]);

/** Rules that come to too much with what is known here of ranges, addresses and other cells. */
function rulesRefusals(state: ControllerState, cell: Cell): readonly Diagnostic[] {
  const refusals: Diagnostic[] = [];
  checkRules(
    cell,
    (code, message, path, { hint } = {}) =>
      void refusals.push({ code, message, path, ...(hint === undefined ? {} : { hint }) }),
    {
      rangeOf: ({ cidr, path }) => parseNetwork(cidr ?? recordAt(state, path)?.range?.cidr ?? ""),
      addressOf: (path) => parseNetwork(recordAt(state, path)?.allocation?.address ?? ""),
      foreign: (end) => foreignNetworks(state, end),
    },
  );
  return refusals;
}

/** Why a cell cannot take the place of the present one, beyond what the specification itself says; empty if it can. @param joining see `hostRefusals` */
export function refusalsOf(state: ControllerState, cell: Cell, plan: Plan, joining?: string): readonly Diagnostic[] {
  // A child's name goes on with its parent's.
  const [own = ""] = state.options.cell.split(".");
  const refusals = [
    ...managementRefusals(state, cell),
    ...accountRefusals(state, cell),
    ...hostRefusals(state, cell, joining),
    ...dedicationRefusals(state, cell),
    ...poolRefusals(state, cell, joining),
    ...ownVmRefusals(state, cell, plan),
    ...rulesRefusals(state, cell),
    ...sizeRefusals(state, cell, plan),
    ...holdRefusals(state, plan),
    ...holdFaults(state, cell, plan),
  ];
  if (cell.name === own) return refusals;
  return [
    ...refusals,
    {
      code: "cell/wrong-name",
      message: `the specification is of the cell "${cell.name}", and this is the cell "${own}"`,
      hint: `Submit it as the cell "${cell.name}", or set \`x.name\` to "${own}".`,
      path: cell.path,
    },
  ];
}

/**
 * Takes a checked cell (null: none, the whole is deleted) as the model, unless its plan is not right: the answer is then what
 * `wrongInPlan` says, and nothing has changed.
 */
export function acceptModel(
  state: ControllerState,
  cell: Cell | null,
  plan: Plan,
  asked: Asked = { verb: "deleteModel", target: "" },
): readonly string[] {
  const faults = inOneGo(wrongInPlan(state, cell, plan));
  if (faults.length === 0) finish(state, executePlan(state, cell, plan, asked));
  return faults;
}

/**
 * What is wrong with a plan, a sentence each, which only a mistake of ours can bring about (`model/plan/plan-check.ts`). Such a
 * plan must not be executed.
 */
export function* wrongInPlan(state: ControllerState, cell: Cell | null, plan: Plan): InSlices<readonly string[]> {
  const faults = yield* planFaultsInSlices(presentFor(state, cell), cell, plan, unwrittenIn(state), heldIn(state));
  if (faults.length > 0) log(state.outbox, "model/plan-refused", { path: state.options.cell, type: "Cell", faults });
  return faults;
}

/**
 * One transaction: the document, the UIDs and what the plan says of each element are durable together. A plan without changes
 * makes no new version.
 *
 * The records of a large model are made in slices. What they write is held back until the last slice, which is the transaction.
 * Whoever reads meanwhile finds an element by its path in the model of before, and of that a record says the same as it did.
 */
export function* executePlan(state: ControllerState, cell: Cell | null, plan: Plan, asked: Asked): Work {
  const before = state.cell;
  const version = state.model.version + 1;
  const upgrades = notesForUpgrade(state, plan.steps);
  const identities = identify(state.uids, plan, state.options.cellUid, state.counters.nextNumber);
  const uids = cell === null ? new Map<ElementPath, Uid>() : withKept(state, cell, identities.uids);
  yield* heldBack(state, adoptElements(state, cell, uids));
  saveCounters(state, { nextNumber: identities.nextNumber });
  saveModel(state, { version, document: cell?.document ?? null }, cell);
  auditDone(state, asked, version - 1);
  keepVersion(state, plan, asked);
  createGrants(state, plan);
  beginUpgrades(state, upgrades);
  for (const step of plan.steps) {
    const uid = step.type === "VM" ? state.uids.get(step.path) : undefined;
    // A change to a VM is also how a person says: try again.
    if (uid === undefined || step.action === "none" || step.action === "delete") continue;
    const vm = state.vms.get(uid);
    const failed = vm?.run === null && vm.failure !== null;
    const isRestarted = step.action === "restart" && !upgrades.spared.has(step.path);
    if (isRestarted || step.action === "replace" || failed) stopRun(state, uid);
  }
  const path = (cell ?? before)?.path ?? elementPath(state.options.cell);
  const changes: Record<string, Json> = {};
  for (const { action } of plan.steps) {
    if (action !== "none") changes[action] = Number(changes[action] ?? 0) + 1;
  }
  log(state.outbox, "model/accepted", { path, type: "Cell", version, changes });
}

/** Makes records for new elements, renames moved ones, and marks those that left the model; UIDs count from the end on. */
export function* adoptElements(
  state: ControllerState,
  cell: Cell | null,
  uids: ReadonlyMap<ElementPath, Uid>,
): InSlices<void> {
  const kept = new Set<Uid>();
  let { nextIdentity } = state.counters;
  for (const element of cell?.elements.values() ?? []) {
    const uid = uids.get(element.path);
    if (uid === undefined) throw new Error(`identify gave ${element.path} no UID`);
    kept.add(uid);
    const identity = isNamed(element) ? nextIdentity : 0;
    if (adoptElement(state, element, uid, identity) && isNamed(element)) nextIdentity += 1;
    yield 1;
  }
  if (nextIdentity !== state.counters.nextIdentity) saveCounters(state, { nextIdentity });
  for (const record of [...state.elements.values()]) {
    if (kept.has(record.uid) || record.deleting) continue;
    const held = holdsOf(state, record);
    saveElement(state, {
      ...record,
      deleting: true,
      ...(held.length > 0 ? { held } : isVolume(record) ? { letGo } : {}),
    });
    yield 1;
  }
  for (const path of [...state.uids.keys()]) if (!uids.has(path)) state.uids.delete(path);
  for (const [path, uid] of uids) state.uids.set(path, uid);
}

const isVolume = ({ type }: Pick<Element, "type">): boolean => type === "Volume" || type === "VolumeCopy";
const letGo = true;

/** Has packets judged by it. */
const isNamed = ({ type }: Element): boolean => type === "VM" || type === "Subnet" || type === "VirtualInterface";

/** @returns whether it is new */
function adoptElement(state: ControllerState, { path, type }: Element, uid: Uid, identity: number): boolean {
  const known = state.elements.get(uid);
  if (known !== undefined) {
    if (known.path !== path) log(state.outbox, "element/moved", { path, type, uid, from: known.path });
    const { held: _held, letGo: _letGo, ...rest } = known;
    if (known.path !== path || known.deleting) saveElement(state, { ...rest, path, deleting: false });
    return false;
  }
  saveElement(state, {
    uid,
    path,
    type,
    deleting: false,
    ...(isVolume({ type }) ? { unwritten: true } : {}),
    identity,
    allocation: null,
    range: null,
    name: null,
    phase: null,
    causes: [],
    since: state.now.wallMs,
  });
  if (type === "VM") saveVm(state, { uid, incarnation: 0, failures: 0, failure: null, again: false, run: null });
  return true;
}
