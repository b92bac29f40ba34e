import type { ElementPath } from "../../../../model/cell/identifiers.ts";
import { identify } from "../../../../model/plan/identity.ts";
import { planChange } from "../../../../model/plan/plan.ts";
import { inOneGo } from "../../../../model/slices.ts";
import { desiredVolume } from "../../../documents/readers/storage.ts";
import { log } from "../../../outbox.ts";
import { meansOf } from "../../network/entrance.ts";
import { foreignVolume } from "../../references/foreign.ts";
import { bootLink, serviceVms } from "../../services/boot-disks.ts";
import { type ControllerState, desiredNow, saveCounters, storageManagerOf } from "../../state.ts";
import { beginUpgrades, notesForUpgrade } from "../../upgrade/upgrade.ts";
import { adoptElements } from "../model-change.ts";

/**
 * How the gateway comes to the root cell's new image (decision 34). It boots from a copy of that image in a cell of its own,
 * whose model says no more than where the image is, and stays the same. So its controller makes the copy anew when another
 * volume is shown there, and tries it as any other upgrade. A tenant's copy is never made anew: it holds what was written there.
 *
 * The root cell shows its new image to others only when all of its own services run from it (`seen-by-others.ts`), so the gateway comes last, and
 * an image that did not come up elsewhere never reaches it.
 */
export function followImages(state: ControllerState): void {
  const { cell } = state;
  if (cell === null || state.options.root !== undefined || meansOf(state) === null) return;
  const anew = new Set(serviceVms(state).flatMap(({ path }) => outdatedCopy(state, path) ?? []));
  if (anew.size === 0) return;
  const upgrades = notesForUpgrade(state, []);
  const steps = planChange(cell, cell).steps.map((step) => {
    const element = cell.elements.get(step.path);
    const refers = element?.type === "VolumeConnection" || element?.type === "VolumeGrant";
    const isAnew = anew.has(step.path) || (refers && anew.has(element.volume));
    return isAnew ? { ...step, action: "replace" as const } : step;
  });
  const { uids, nextNumber } = identify(state.uids, { steps }, state.options.cellUid, state.counters.nextNumber);
  saveCounters(state, { nextNumber });
  inOneGo(adoptElements(state, cell, uids));
  beginUpgrades(state, upgrades);
  for (const path of anew) log(state.outbox, "upgrade/image-changed", { path, type: "VolumeCopy" });
}

/** The boot volume of a VM, if what it is to be a copy of is another volume than what it was copied from. */
function outdatedCopy(state: ControllerState, vm: ElementPath): ElementPath | null {
  const volume = bootLink(state, vm)?.volume;
  const element = volume === undefined ? undefined : state.cell?.elements.get(volume);
  const uid = volume === undefined ? undefined : state.uids.get(volume);
  if (element?.type !== "VolumeCopy" || uid === undefined) return null;
  const now = foreignVolume(state, element.image, element.path)?.uid;
  const document = desiredVolume.of(desiredNow(state, storageManagerOf(state), `volume/${uid}`));
  const origin = document?.origin.kind === "copy" ? document.origin.volume : undefined;
  return now === undefined || origin === undefined || now === origin ? null : element.path;
}
