import type { Uid } from "../../../model/cell/identifiers.ts";
import { type ActualOver, type DesiredProtected, overKey, protectedKey } from "../../documents/ha.ts";
import { actualOver } from "../../documents/readers/ha.ts";
import type { Run, VmRecord } from "../records.ts";
import { isGuardKnown } from "../services/guard.ts";
import { isOwnVm } from "../services/service-data.ts";
import {
  actualOf,
  addDesire,
  type ControllerState,
  elementOf,
  haManagerOf,
  isOff,
  storageManagerOf,
} from "../state.ts";
import { placementOf } from "./places/placement.ts";
import { isGivenUp, recreatableOf } from "./recreatable.ts";

/**
 * What the HA Manager looks after: every incarnation that a host was told to run, until it is confirmed gone. The root
 * controller's own VM is not among them, since hosts start it again themselves (decision 35), and who is protected by whom must
 * not go round in a circle.
 */
export function desireProtected(state: ControllerState): void {
  state.pass.each("protected", state.vms, (record, _uid, desires) => {
    const { uid: vm, run } = record;
    const ofElement = state.elements.get(vm);
    if (!state.ha || !isGuardKnown(state) || ofElement === undefined || isOwnVm(state, vm)) return;
    const element = elementOf(state, ofElement);
    const ofModel = {
      vm,
      cell: state.options.cell,
      path: ofElement.path,
      priority: element?.type === "VM" ? element.priority : 0,
      isolated: element?.type === "VM" ? element.ha.isolated : ("keep" as const),
      storageManager: storageManagerOf(state),
      ...(state.guard === null ? {} : { boundAt: state.guard.at }),
      ...(element === undefined ? { deleted: true as const } : {}),
    };
    // Who looks after it hears so; the incarnation behind it is looked after in its place.
    if (run === null && record.freed?.incarnation === record.incarnation)
      addDesire(desires, haManagerOf(state), protectedKey(vm), {
        ...ofModel,
        ...record.freed,
        lost: "end" as const,
        forced: true as const,
      } satisfies DesiredProtected);
    if (run === null || run.host === null || !run.handedOver) return;
    const isOn = element?.type === "VM" && element.desiredState === "on" && !isOff(state);
    const isWanted = isOn && run.stage !== "stopping";
    const [interfaceThere] = state.derived.placed.get(vm) ?? [];
    addDesire(desires, haManagerOf(state), protectedKey(vm), {
      ...ofModel,
      incarnation: run.incarnation,
      host: run.host,
      ...(run.boot === undefined ? {} : { boot: run.boot }),
      lost: !isWanted ? "end" : element.restartOnFailure ? "restart" : "leave",
      ...(recreatableOf(state, record, run) === null ? {} : { recreatable: true as const }),
      ...(isOn && isLeaving(state, record, run) ? { leaves: true as const } : {}),
      ...(interfaceThere === undefined ? {} : { address: interfaceThere.address }),
    } satisfies DesiredProtected);
  });
}

/** The operator sends it to another host, or the Placer wants it off this one; as long as the model wants it to run. */
const isLeaving = (state: ControllerState, { uid, move }: VmRecord, run: Run): boolean =>
  move?.incarnation === run.incarnation || placementOf(state, uid, run)?.leave !== undefined;

/**
 * The HA Manager's word that this very incarnation, at this very host, can write nothing any more; null: it has not said so.
 * Nothing is asked beside it: whether it was seen stopped or fenced is its matter, and the next epoch of each volume is granted
 * after a fence in any case. One that may go on is over when all that it may write to has been given up here.
 */
export function overOf(state: ControllerState, vm: Uid, run: Run): ActualOver | null {
  const over = saidOver(state, vm, run);
  return over?.by === "recreatable" && !isGivenUp(state, run) ? null : over;
}

/** What it has said of it, whether that counts yet or not. */
export function saidOver(state: ControllerState, vm: Uid, run: Run): ActualOver | null {
  if (!state.ha || run.host === null || isOwnVm(state, vm)) return null;
  const over = actualOf(actualOver, state, haManagerOf(state), overKey(vm));
  if (over?.incarnation !== run.incarnation || over.host !== run.host) return null;
  // One that had the cell before may have said it then; another one looked after it since, and it may run.
  return over.boundAt === state.guard?.at ? over : null;
}
