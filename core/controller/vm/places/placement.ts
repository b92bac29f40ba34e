import type { CauseOf } from "../../../../model/cause/cause.ts";
import { displayShare } from "../../../../model/cell/attributes/display-memory.ts";
import { mostOf, withBeside } from "../../../../model/cell/tenants/wishes/nice.ts";
import { actualPlacement } from "../../../documents/readers/placement.ts";
import type { ActualPlacement, DesiredPlacement } from "../../../documents/vocabulary.ts";
import { heldHosts } from "../../histories/fork.ts";
import { modeAsked } from "../../network/instances.ts";
import type { ElementRecord, Rested, Run } from "../../records.ts";
import { actualOf, addDesire, type ControllerState, elementOf, placerOf } from "../../state.ts";

/** Every incarnation holds its place until it is confirmed gone, so that its memory is not promised twice. */
export function desirePlacements(state: ControllerState): void {
  state.pass.each("placements", state.vms, ({ uid: vm, run, avoid = [], move, rested }, _uid, desires) => {
    const record = state.elements.get(vm);
    if (record === undefined) return;
    if (run === null) {
      if (rested !== undefined && elementOf(state, record) !== undefined)
        addDesire(desires, placerOf(state), `placement/${vm}`, restedPlace(state, record, rested));
      return;
    }
    const { path } = record;
    const element = elementOf(state, record);
    const priority = element?.type === "VM" ? element.priority : 0;
    const isAsked = move?.incarnation === run.incarnation && run.host !== null && move.to !== run.host;
    // Once it runs, its host is a fact; that it chose it itself is known of the root controller's VM alone.
    const on = run.host !== null && run.succeeded === true ? { on: run.host } : {};
    const at = run.host === null ? {} : { at: run.host };
    // Its screen is memory of the host, too, and none of its guest's.
    const besideMiB = element?.type === "VM" ? displayShare(element) : 0;
    const others = run.host === null ? [...new Set([...avoid, ...heldHosts(state)])] : avoid;
    addDesire(desires, placerOf(state), `placement/${vm}`, {
      vm,
      path,
      cell: state.options.cell,
      incarnation: run.incarnation,
      memoryMiB: (run.least?.memoryMiB ?? run.memoryMiB) + besideMiB,
      cpus: run.least?.cpus ?? run.cpus,
      cpuSpeedMHz: run.cpuSpeedMHz,
      placement: withBeside(run.placement, besideMiB),
      ...(others.length === 0 ? {} : { avoid: others }),
      ...on,
      ...at,
      ...(priority === 0 ? {} : { priority }),
      ...(isAsked ? { moveTo: move.to } : {}),
      ...(run.restart === true ? { restart: true as const } : {}),
      ...(run.least === undefined ? {} : { has: { memoryMiB: run.memoryMiB + besideMiB, cpus: run.cpus } }),
      ...(run.image === undefined ? {} : { image: run.image }),
      ...modeAsked(state),
    } satisfies DesiredPlacement);
  });
}

/** It takes no room there. */
function restedPlace(
  { options }: ControllerState,
  { uid: vm, path }: ElementRecord,
  { host, incarnation, memoryMiB, cpus, cpuSpeedMHz, placement }: Rested,
): DesiredPlacement {
  const resources = { memoryMiB, cpus, cpuSpeedMHz, placement };
  return { vm, path, cell: options.cell, incarnation, ...resources, at: host, off: true };
}

/** The Placer's answer for this very incarnation; an answer for an earlier one means nothing. */
export function placementOf(state: ControllerState, vm: string, run: Run): ActualPlacement | undefined {
  const actual = actualOf(actualPlacement, state, placerOf(state), `placement/${vm}`);
  return actual?.incarnation === run.incarnation ? actual : undefined;
}

/**
 * What a place gives by nice wishes, and no more than these ask for: the cell's quota counts no more.
 * @param besideMiB of what is given, none of the guest's
 */
export function givenBy(
  { given, nice }: Partial<ActualPlacement>,
  run: Run,
  besideMiB: number,
): Pick<Run, "nice" | "least"> & Partial<Run> {
  const { memoryMiB, cpus, placement } = run;
  const least = { memoryMiB, cpus };
  const has = given === undefined ? undefined : { ...given, memoryMiB: given.memoryMiB - besideMiB };
  const isAsked =
    has !== undefined &&
    has.memoryMiB >= memoryMiB &&
    has.cpus >= cpus &&
    has.memoryMiB <= mostOf("memory", memoryMiB, placement) &&
    has.cpus <= mostOf("cpus", cpus, placement);
  return { ...(nice === undefined ? {} : { nice }), ...(isAsked ? { least, ...has } : {}) };
}

/** Why there is no host yet, host by host. */
export const noHost = ({ refusals, counts, reason, advice }: ActualPlacement): CauseOf<"no-host"> => ({
  kind: "no-host",
  refusals,
  ...(counts === undefined ? {} : { counts }),
  said: refusals.length === 0 ? reason : null,
  ...(advice === undefined ? {} : { advice }),
});
