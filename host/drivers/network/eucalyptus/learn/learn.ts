import { join } from "node:path";
import { attach, attachedProgram, detachAll, programId } from "../../diverter/program/libbpf.ts";
import { numbers, type Opened, type PinnedObject, unpinObject, withLoaded, withPinned } from "../tags/pinned.ts";

/*
 * The program of learn.c at each tap, which works on while this process is away: it keeps addresses that a site's DHCP server gives to instances, as
 * the instances' own ARP says them, or has instances ask a DHCP server for themselves alone.
 */

/** A tap at which the program is to work. */
export interface WatchedTap {
  /** Its index. */
  readonly device: number;
  /** Of its instance (aa:bb:…, in small letters): no other's words count. */
  readonly mac: string;
  /** Requests to DHCP servers are held to the MAC; otherwise addresses are learnt. */
  readonly holds: boolean;
}
export interface HeardTap extends WatchedTap {
  /** As a number; null: none was heard yet. */
  readonly heard: number | null;
  /** The program is at the tap. */
  readonly works: boolean;
}
export interface Learner {
  read(): Promise<readonly HeardTap[]>;
  /** At these taps and no others. */
  apply(taps: readonly WatchedTap[]): Promise<void>;
}
export const objectFile = join(import.meta.dirname, "learn.o");
const maps = { heard: [4, 12] } as const;
type Programs = Opened<keyof typeof maps, "learn">;

/** @param bpffs where a bpffs is mounted once something is to be pinned */
export function createLearner(bpffs: string): Learner {
  const pinned: PinnedObject<keyof typeof maps, "learn"> = { bpffs, object: objectFile, maps, programs: ["learn"] };
  return {
    async read() {
      const found = withPinned(pinned, ({ maps: { heard }, programs: { learn } }) => {
        const id = programId(learn);
        return heard.entries().map(({ key, value }) => {
          const device = key.readUInt32LE(0);
          const [address, holds] = [value.readUInt32BE(8), value[6] !== 0];
          const mac = value.toString("hex", 0, 6).replace(/..(?=.)/g, "$&:");
          return { device, mac, holds, heard: address === 0 ? null : address, works: attachedProgram(device) === id };
        });
      });
      return found ?? [];
    },
    async apply(taps) {
      if (taps.length > 0) return withLoaded(pinned, (opened) => put(opened, taps));
      if (withPinned(pinned, (opened) => put(opened, [])) !== null) unpinObject(pinned);
    },
  };
}
/** A tap that is there no more has taken the program with it. */
function put({ maps: { heard }, programs: { learn } }: Programs, taps: readonly WatchedTap[]): void {
  const keep = new Set(taps.map(({ device }) => device));
  for (const { key } of heard.entries()) {
    const device = key.readUInt32LE(0);
    if (keep.has(device)) continue;
    heard.delete(key);
    detachAll(device);
  }
  const id = programId(learn);
  for (const tap of taps) {
    const [key, wanted] = [numbers(tap.device), entryOf(tap)];
    // What was heard of the same instance stays.
    if (heard.get(key)?.subarray(0, 8).equals(wanted.subarray(0, 8)) !== true) heard.set(key, wanted);
    if (attachedProgram(tap.device) !== id) attach(tap.device, learn);
  }
}
function entryOf({ mac, holds }: WatchedTap): Buffer {
  const entry = Buffer.alloc(maps.heard[1]);
  entry.write(mac.replaceAll(":", ""), 0, 6, "hex");
  entry[6] = holds ? 1 : 0;
  return entry;
}
