import type { ActualVolume } from "../../documents/vocabulary.ts";

/** The size that a volume has, whatever was asked for; null: not known. */
export const trueSizeMiB = (actual: ActualVolume | undefined): number | null =>
  actual?.smallerMiB ?? actual?.sizeMiB ?? null;
