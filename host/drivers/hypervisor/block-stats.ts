import type { Uid } from "../../../model/cell/identifiers.ts";
import { asRecord } from "./process/lines.ts";
import { inTime, type Qmp } from "./qmp.ts";

/** What a machine's own process has counted of its disks. */
const statsOf = async (qmp: Qmp): Promise<readonly Readonly<Record<string, unknown>>[] | null> => {
  const answer = await qmp.execute("query-blockstats").catch(() => null);
  return Array.isArray(answer) ? answer.map((disk) => asRecord(asRecord(disk).stats)) : null;
};

/** Has its guest ever written to a disk? Firmware only reads. What cannot be asked is taken for one that has a guest. */
export const hasWritten = async (qmp: Qmp): Promise<boolean> =>
  (await statsOf(qmp))?.some(({ wr_operations }) => Number(wr_operations) > 0) ?? true;

/** Whoever looks at many machines waits for none of them for longer: one that a guest has taken over may never answer. */
const patienceMs = 1000;

export interface DiskCounts {
  /** By machine, octets that its disks have read and written since its process began. Who does not say is left out. */
  diskOctets(): Promise<ReadonlyMap<Uid, number>>;
}
/** Octets that each machine's disks have read and written (`DiskCounts`). */
export async function octetsOfDisks(
  machines: readonly { readonly vm: Uid; readonly qmp: Qmp | null }[],
): Promise<ReadonlyMap<Uid, number>> {
  const all = machines.map(async ({ vm, qmp }): Promise<readonly [Uid, number][]> => {
    const stats = qmp === null ? null : await inTime(statsOf(qmp), patienceMs).catch(() => null);
    if (stats === null) return [];
    const octets = stats.reduce((sum, { rd_bytes, wr_bytes }) => sum + Number(rd_bytes) + Number(wr_bytes), 0);
    // A guest that has taken its process over says what it likes.
    return Number.isSafeInteger(octets) && octets >= 0 ? [[vm, octets]] : [];
  });
  return new Map((await Promise.all(all)).flat());
}
