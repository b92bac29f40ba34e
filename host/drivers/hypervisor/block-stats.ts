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

/** What a machine's process was asked and has not answered. One that has not in time is asked nothing more, or questions would be heaped up for it. */
const asked = new WeakMap<Qmp, { readonly answer: ReturnType<typeof statsOf>; isLate: boolean }>();
async function statsInTime(qmp: Qmp): ReturnType<typeof statsOf> {
  const question = asked.get(qmp) ?? { answer: statsOf(qmp).finally(() => asked.delete(qmp)), isLate: false };
  asked.set(qmp, question);
  if (question.isLate) return null;
  return inTime(question.answer, patienceMs).catch(() => {
    question.isLate = true;
    return null;
  });
}

export interface DiskCounts {
  /** By machine, octets that its disks have read and written since its process began. Who does not say is left out. */
  diskOctets(): Promise<ReadonlyMap<Uid, number>>;
}
/** Octets that each machine's disks have read and written (`DiskCounts`). */
export async function octetsOfDisks(
  machines: readonly { readonly vm: Uid; readonly qmp: Qmp | null }[],
): Promise<ReadonlyMap<Uid, number>> {
  const all = machines.map(async ({ vm, qmp }): Promise<readonly [Uid, number][]> => {
    const stats = qmp === null ? null : await statsInTime(qmp);
    if (stats === null) return [];
    const octets = stats.reduce((sum, { rd_bytes, wr_bytes }) => sum + Number(rd_bytes) + Number(wr_bytes), 0);
    // A guest that has taken its process over says what it likes.
    return Number.isSafeInteger(octets) && octets >= 0 ? [[vm, octets]] : [];
  });
  return new Map((await Promise.all(all)).flat());
}
