import type { Cell, VolumeCopyElement, VolumeElement } from "./cell.ts";
import type { ReportFault } from "./check-cell.ts";

/** What all storage servers together say of their room, in MiB. Without free ones a volume waits; with none large enough it is refused. */
export interface StorageOffer {
  readonly totalMiB: number;
  /** Free now, rounded down: for people. Decides nothing, since it may be more in a minute. */
  readonly freeMiB: number;
  readonly largestFreeMiB: number;
  /** The largest volume that some server could hold if it were empty. */
  readonly largestMiB: number;
  /** The same for a copy: it takes little at first, and servers promise more than they have. */
  readonly largestCopyMiB: number;
}

/** A volume larger than any server could ever hold can only wait: it is refused instead. `offer` is of all servers. */
export function checkStorage(cell: Cell, offer: StorageOffer, fault: ReportFault): void {
  for (const element of cell.elements.values()) {
    if (element.type === "Volume") checkSize(element, offer.largestMiB, offer, fault);
    else if (element.type === "VolumeCopy") checkSize(element, offer.largestCopyMiB, offer, fault);
  }
}

function checkSize(
  volume: VolumeElement | VolumeCopyElement,
  largestMiB: number,
  offer: StorageOffer,
  fault: ReportFault,
): void {
  const { path, sizeMiB = 1 } = volume;
  if (sizeMiB <= largestMiB) return;
  if (largestMiB === 0) {
    const hint = "A storage server must join first.";
    fault("cell/no-storage", "The installation has no storage server that could hold a volume", path, { hint });
    return;
  }
  fault("cell/no-storage", `\`${path}\` asks for ${sizeMiB} MiB, more than any storage server can ever hold`, path, {
    attribute: "x.size",
    hint: `At most ${largestMiB} MiB can be had (${Math.min(largestMiB, offer.largestFreeMiB)} MiB at the moment): write \`x.size ${largestMiB}\` or less.`,
  });
}
