import type { Cell, Element, VmElement, VolumeElement } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import { isOfFew } from "../cell/image-name.ts";
import type { OfferedImage, StorageOffer } from "../check/check-storage.ts";
import { closestName } from "../diagnostics/closest-name.ts";
import type { Plan } from "./plan-types.ts";

/**
 * What will not become ready as things stand, of what a plan makes or changes, and can be known before. It is no fault: an image
 * may be added, and what waits for it goes on then.
 */
export interface Foreseen {
  readonly path: ElementPath;
  readonly type: Element["type"];
  /** What will be, and what would help. */
  readonly says: string;
}

/** @param offer what the storage servers have; null: not known as a whole, so that nothing is said of images */
export function foreseenOf(cell: Cell, { steps }: Plan, offer: StorageOffer | null): readonly Foreseen[] {
  const made = new Set(
    steps.flatMap(({ action, path }) => (action === "create" || action === "replace" ? [path] : [])),
  );
  const disks = disksOf(cell);
  return steps.flatMap(({ action, path }) => {
    const element = action === "none" ? undefined : cell.elements.get(path);
    const says =
      element?.type === "Volume" && made.has(path)
        ? ofImage(element, offer?.images)
        : element?.type === "VM" && element.desiredState === "on"
          ? (ofBoot(cell, disks.get(path) ?? [], made) ?? ofAsked(cell, element))
          : null;
    return element === undefined || says === null ? [] : [{ path, type: element.type, says }];
  });
}

function ofImage(
  { import: image, sizeMiB }: VolumeElement,
  images: readonly OfferedImage[] | undefined,
): string | null {
  // Images of services are the operator's, uploads their account's, and in nobody's list.
  if (image === undefined || images === undefined || isOfFew(image)) return null;
  const found = images.find(({ name }) => name === image);
  if (found === undefined) {
    const names = images.map(({ name }) => name);
    const closest = closestName(image, names);
    const meant = closest === undefined ? `there are: ${names.join(", ")}` : `did you mean "${closest}"?`;
    return `it will wait: there is no image "${image}"; ${meant} The operator adds one by \`cells image add\``;
  }
  return sizeMiB < found.sizeMiB
    ? `it will fail: the image "${image}" needs ${found.sizeMiB} MiB; write x.size ${found.sizeMiB} or more`
    : null;
}

/** Of a VM whose disks are all new and empty, or that has none. One that was there before may have been written to. */
function ofBoot(cell: Cell, disks: readonly ElementPath[], made: ReadonlySet<ElementPath>): string | null {
  if (disks.length === 0)
    return "it has no disk to boot from: connect a volume to it by a VolumeConnection, such as a VolumeCopy of one with x.import";
  if (disks.some((disk) => mayBoot(cell, disk, made))) return null;
  return `it has nothing to boot from: ${disks.join(", ")} ${disks.length === 1 ? "is" : "are"} made empty; give one an x.import, or let it be a VolumeCopy of a volume that has`;
}
/**
 * Of a VM that is asked at one of several interfaces in one subnet. A guest that does not route by source sends all answers there
 * out by one of them, by whichever came up first, and no host takes a packet from an interface that has another's address.
 */
function ofAsked(cell: Cell, { path: vm, liveness }: VmElement): string | null {
  const asked = liveness?.interface === undefined ? undefined : cell.elements.get(liveness.interface);
  if (asked?.type !== "VirtualInterface") return null;
  const beside = [...cell.elements.values()].find(
    (each) => each !== asked && each.type === "VirtualInterface" && each.vm === vm && each.subnet === asked.subnet,
  );
  if (beside === undefined) return null;
  return (
    `it is asked at ${asked.path}, and has ${beside.path} in the same subnet: a guest that does not route by source answers from ` +
    `whichever of them came up first, and from the other nothing passes; give ${asked.path} a subnet of its own`
  );
}

/** By VM, in the order of their connections. */
function disksOf(cell: Cell): ReadonlyMap<ElementPath, readonly ElementPath[]> {
  const disks = new Map<ElementPath, ElementPath[]>();
  for (const element of cell.elements.values()) {
    if (element.type !== "VolumeConnection") continue;
    const known = disks.get(element.vm) ?? [];
    known.push(element.volume);
    disks.set(element.vm, known);
  }
  return disks;
}
function mayBoot(cell: Cell, path: ElementPath, made: ReadonlySet<ElementPath>, depth = 0): boolean {
  const volume = cell.elements.get(path);
  // Of another cell: nobody here knows what is on it. A copy whose copies lead back to it is refused elsewhere.
  if (volume === undefined || !made.has(path) || depth > 100) return true;
  if (volume.type === "Volume") return volume.import !== undefined;
  return volume.type !== "VolumeCopy" || mayBoot(cell, volume.image, made, depth + 1);
}
