import { isOfFew } from "../../model/cell/image-name.ts";
import type { OfferedImage } from "../../model/check/check-storage.ts";
import { maximumCount } from "../../model/json/reader.ts";
import type { AgentServer, StorageOffers } from "../documents/vocabulary.ts";

/** Files are sparse: a server may promise this many times its whole space. */
export const overcommit = 20;
/** A copy takes no bytes at first, yet a server without any room would fail its first write. */
export const copyNeedsMiB = 64;

/** Free space is told in steps of this part of the whole: its every change would go to every controller otherwise. */
const steps = 64;
const rounded = (freeMiB: number, totalMiB: number): number => {
  const step = Math.max(1, Math.ceil(totalMiB / steps));
  return Math.floor(freeMiB / step) * step;
};

/**
 * What the storage servers could hold, for controllers to tell what can never be placed: by the same rules as placing, as
 * if every server were empty. One that was never heard of (null) might hold anything: then the list is not complete, and
 * nothing is impossible.
 */
export function storageOffersOf(
  all: Iterable<AgentServer | null>,
  /** Of all servers. What is the largest of one name counts: any of them may be asked for it. */
  images: Iterable<OfferedImage> = [],
): StorageOffers {
  const servers = [...all];
  const known = servers.filter((server) => server !== null);
  const free = known.map(({ freeMiB, totalMiB }) => rounded(freeMiB, totalMiB));
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const largestMiB = Math.max(0, ...known.map(({ totalMiB }) => totalMiB));
  const totalMiB = sum(known.map((server) => server.totalMiB));
  return {
    totalMiB: readable(totalMiB),
    freeMiB: readable(sum(free)),
    largestFreeMiB: Math.max(0, ...free),
    largestMiB,
    largestCopyMiB: largestMiB < copyNeedsMiB ? 0 : readable(overcommit * largestMiB),
    promisableMiB: readable(overcommit * totalMiB),
    ...offered(images),
    complete: known.length === servers.length,
    saysGrants: true,
  };
}

/** One server that says of itself more than there can be keeps no controller from reading what all of them could hold. */
const readable = (amountMiB: number): number => Math.min(amountMiB, maximumCount);

const offered = (images: Iterable<OfferedImage>): Pick<StorageOffers, "images"> => {
  const sizes = new Map<string, number>();
  for (const { name, sizeMiB } of images) if (!isOfFew(name)) sizes.set(name, Math.max(sizeMiB, sizes.get(name) ?? 0));
  const sorted = [...sizes].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.length === 0 ? {} : { images: sorted.map(([name, sizeMiB]) => ({ name, sizeMiB })) };
};
