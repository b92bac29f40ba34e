import { said } from "../../../model/cause/cause.ts";
import type { Cell, Element } from "../../../model/cell/cell.ts";
import { type ElementPath, hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import { attributeSchema } from "../../../model/cell/schema.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Plan, PlanStep, VolumeGrowth } from "../../../model/plan/plan-types.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import type { ActualVolume } from "../../documents/vocabulary.ts";
import { asSaid, because, standing, target } from "../changes/standing.ts";
import type { Run, RunDisk, Standing } from "../records.ts";
import { foreignVolume } from "../references/foreign.ts";
import { actualOf, type ControllerState, recordAt, runs, storageManagerOf } from "../state.ts";
import { actualVmOf } from "../vm/life-cycle.ts";
import { trueSizeMiB } from "./true-size.ts";

/*
 * Volumes that grow: when, whether they have, and what is said of one that cannot. A volume is usable meanwhile, so its VMs
 * wait for nothing; but it is ready only when it has the size that is declared, and so has the disk of each VM that runs.
 */

type VolumeElement = Extract<Element, { type: "Volume" | "VolumeCopy" }>;
const isVolume = (element: Element | undefined): element is VolumeElement =>
  element?.type === "Volume" || element?.type === "VolumeCopy";

interface Use {
  readonly vm: Uid;
  readonly path: ElementPath;
  readonly run: Run;
  readonly disk: RunDisk;
}

const saidOf = (state: ControllerState, volume: Uid): ActualVolume | undefined =>
  actualOf(actualVolume, state, storageManagerOf(state), `volume/${volume}`);

/** Incarnations of this cell that may have it open. */
function usesOf(state: ControllerState, volume: Uid): readonly Use[] {
  const uses: Use[] = [];
  for (const { vm, run } of runs(state)) {
    const path = state.elements.get(vm)?.path;
    if (run.stage === "placing" || path === undefined) continue;
    for (const disk of run.disks) if (disk.volume === volume) uses.push({ vm, path, run, disk });
  }
  return uses;
}

/** Whether a disk can become larger while its guest runs: its file must have the room, and IDE has no word for it. */
const growsWhileItRuns = ({ busType }: RunDisk, roomMiB: number | undefined, sizeMiB: number): boolean =>
  busType !== "ide" && (roomMiB ?? 0) >= sizeMiB;

/** Why a volume that can be used has not the size that is declared; null: it has. */
export function whyNotGrown(
  state: ControllerState,
  volume: Uid,
  { sizeMiB: to }: VolumeElement,
  actual: ActualVolume,
): Standing | null {
  const manager = storageManagerOf(state);
  if (actual.owes !== undefined) return asSaid(manager, actual.owes);
  const from = trueSizeMiB(actual);
  if (to === undefined || from === null || actual.sizeMiB === null || from >= to) return null;
  const uses = usesOf(state, volume);
  if (actual.sizeMiB < to || uses.length === 0) return standing("working", { kind: "grows", from, to });
  for (const { path: vm, vm: uid, run, disk } of uses) {
    if (!growsWhileItRuns(disk, actual.roomMiB, to)) {
      const since = disk.busType === "ide" ? "ide" : "file";
      return standing("waiting", { kind: "grows-next-start", vm, target: target(state, vm), from, to, since });
    }
    const { disks = [] } = actualVmOf(state, uid, run) ?? {};
    const shown = disks.find(({ connection }) => connection === disk.connection);
    if ((shown?.sizeMiB ?? 0) >= to) continue;
    const why = run.host === null ? [] : said(hostPeer(run.host), shown?.reason);
    return standing("working", { kind: "grows", from, to, vm, ...because(why) });
  }
  return null;
}

/** The plan with what is known here of its volumes: when each grows, and what is really lost with one. */
export const withSizes = (state: ControllerState, plan: Plan): Plan => ({
  ...plan,
  steps: plan.steps.map((step) => {
    if (step.type !== "Volume" && step.type !== "VolumeCopy") return step;
    const uid = state.uids.get(step.movedFrom ?? step.path);
    if (uid === undefined) return step;
    const sizeMiB = trueSizeMiB(saidOf(state, uid));
    const loss = step.loss === undefined || sizeMiB === null ? {} : { loss: { ...step.loss, sizeMiB } };
    // Its size is left out, or written as it is.
    const isKept =
      step.action === "change" &&
      step.causes.some(({ attribute, to }) => attribute === "x.size" && (to === null || to === sizeMiB));
    const grows = isKept ? null : growthOf(state, plan, step, uid);
    const keeps = isKept && sizeMiB !== null ? { keepsMiB: sizeMiB } : {};
    return { ...step, ...loss, ...(grows === null ? {} : { grows }), ...keeps };
  }),
});

function growthOf(state: ControllerState, plan: Plan, step: PlanStep, volume: Uid): VolumeGrowth | null {
  const to = step.causes.find(({ attribute }) => attribute === "x.size")?.to;
  if (step.action !== "change" || typeof to !== "number") return null;
  const started = new Set(
    plan.steps.flatMap(({ path, action }) => (action === "restart" || action === "replace" ? [path] : [])),
  );
  const actual = saidOf(state, volume);
  const uses = usesOf(state, volume).filter(({ run }) => run.stage !== "stopping");
  const [first] = uses;
  if (first === undefined) return { when: "now" };
  const later = uses.find((use) => started.has(use.path) || !growsWhileItRuns(use.disk, actual?.roomMiB, to));
  return later === undefined ? { when: "running", vm: first.path } : { when: "next-start", vm: later.path };
}

/** What a volume has for good of the size that was declared; null: all of it, or that is not known. */
function promisedAtMost({ owes, frozen, sizeMiB, smallerMiB }: ActualVolume): number | null {
  if (owes === undefined) return null;
  return frozen === true ? (smallerMiB ?? sizeMiB) : sizeMiB;
}

/**
 * The present model as a change of it is planned. A size beyond what the volume can have is nothing but a desire: who takes it back
 * makes nothing smaller.
 */
export function presentFor(state: ControllerState, cell: Cell | null): Cell | null {
  if (state.cell === null || cell === null) return state.cell;
  const { elements } = state.cell;
  const desired: [ElementPath, VolumeElement][] = [];
  for (const now of cell.elements.values()) {
    const before = isVolume(now) ? elements.get(now.movedFrom ?? now.path) : undefined;
    const [toMiB, uid] = [isVolume(now) ? now.sizeMiB : undefined, before && state.uids.get(before.path)];
    if (!isVolume(before) || uid === undefined || toMiB === undefined || toMiB >= (before.sizeMiB ?? 0)) continue;
    const actual = saidOf(state, uid);
    const hasMiB = actual === undefined ? null : promisedAtMost(actual);
    if (hasMiB !== null && hasMiB < (before.sizeMiB ?? 0)) desired.push([before.path, { ...before, sizeMiB: hasMiB }]);
  }
  return desired.length === 0 ? state.cell : { ...state.cell, elements: new Map([...elements, ...desired]) };
}

/** Changes of a size that no volume can follow. */
export function sizeRefusals(state: ControllerState, cell: Cell, plan: Plan): readonly Diagnostic[] {
  return plan.steps.flatMap((step): Diagnostic[] => {
    const cause = step.causes.find(({ attribute }) => attribute === "x.size");
    const uid = state.uids.get(step.movedFrom ?? step.path);
    const element = cell.elements.get(step.path);
    if (cause === undefined || uid === undefined || !isVolume(element)) return [];
    const actual = saidOf(state, uid);
    // A copy that does not say its size any more keeps what it has.
    if (cause.to === null) return [];
    const to = typeof cause.to === "number" ? cause.to : originMiB(state, element);
    const has = typeof cause.from === "number" ? cause.from : trueSizeMiB(actual);
    if (to === null || has === null) return [];
    const { path } = step;
    if (to < has)
      return isMadeAnewAnyway(step)
        ? []
        : [
            {
              code: "cell/volume-shrinks",
              path,
              message: `\`${path}\` has ${has} MiB, and a volume cannot be made smaller`,
              hint: `Write \`x.size ${has}\`. To have less, make a volume of ${to} MiB under another name, copy the data over in a VM that has both, and then delete this one.`,
            },
          ];
    if (actual?.frozen !== true || to === has) return [];
    return [
      {
        code: "cell/volume-is-origin",
        path,
        message: `\`${path}\` stays at ${has} MiB: others were made from it or read it, so it never changes`,
        hint: `Write \`x.size ${has}\`, and \`x.size ${to}\` at the copy that needs the room.`,
      },
    ];
  });
}

/** What a copy without a size has; null: not known. */
function originMiB(state: ControllerState, element: VolumeElement): number | null {
  if (element.type !== "VolumeCopy") return null;
  const own = recordAt(state, element.image);
  return own === undefined
    ? (foreignVolume(state, element.image, element.path)?.sizeMiB ?? null)
    : trueSizeMiB(saidOf(state, own.uid));
}

/** Something else than its size makes it another one, or there is nothing to lose. */
const isMadeAnewAnyway = ({ action, causes, losesData, type }: PlanStep): boolean =>
  action === "replace" &&
  (!losesData ||
    causes.some(
      ({ attribute, from, to }) =>
        attribute !== "x.size" && (from === to || attributeSchema(type, attribute)?.effect === "replace"),
    ));
