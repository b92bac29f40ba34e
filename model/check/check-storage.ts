import type { Cell, Element, VolumeCopyElement, VolumeElement } from "../cell/cell.ts";
import { allAsk } from "./check-hosts.ts";
import type { ReportFault } from "./fault.ts";

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
  /** All that the servers together could promise to volumes. */
  readonly promisableMiB: number;
  /** What a volume may start as, by the servers that were heard. Absent: nobody says. */
  readonly images?: readonly OfferedImage[];
}
export interface OfferedImage {
  readonly name: string;
  /** The smallest volume that it fits into. */
  readonly sizeMiB: number;
}

/** A volume larger than any server could ever hold can only wait: it is refused instead. `offer` is of all servers. */
export function checkStorage(elements: readonly Element[], offer: StorageOffer, fault: ReportFault): void {
  for (const element of elements) {
    if (element.type === "Volume") checkSize(element, offer.largestMiB, offer, fault);
    else if (element.type === "VolumeCopy") checkSize(element, offer.largestCopyMiB, offer, fault);
  }
}

/** The volumes that an all-or-none cell adds must fit into what all servers together can promise. */
export function checkStorageOfAll(
  cell: Cell,
  elements: readonly Element[],
  { promisableMiB, largestMiB }: StorageOffer,
  fault: ReportFault,
): void {
  const volumes = elements.filter((element) => element.type === "Volume" || element.type === "VolumeCopy");
  const asked = volumes.reduce((sum, { sizeMiB = 0 }) => sum + sizeMiB, 0);
  // One that is too large for itself was named already.
  if (asked <= promisableMiB || volumes.some(({ type, sizeMiB = 0 }) => type === "Volume" && sizeMiB > largestMiB))
    return;
  const message = `${allAsk(cell, "volumes")} ${asked} MiB, more than all storage servers together can ever promise`;
  fault("cell/no-storage", message, cell.path, {
    attribute: "x.policy.deploy",
    hint: `At most ${promisableMiB} MiB can be had: ask for less, or write \`x.policy.deploy "as-possible"\`.`,
  });
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
