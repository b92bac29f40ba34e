import { join } from "node:path";
import { attach, attachedProgram, detachAll, programId } from "../../diverter/program/libbpf.ts";
import { numbers, type Opened, type PinnedObject, unpinObject, withLoaded, withPinned } from "../tags/pinned.ts";

/*
 * Addresses that a site's DHCP server gives to instances, as the instances' own ARP says them: by the program of learn.c at each tap, which works
 * on while this process is away.
 */

/** Of a tap, by its index. */
export interface HeardTap {
  readonly device: number;
  /** As a number, and the MAC that said it (aa:bb:…); null: nothing was heard yet. */
  readonly heard: { readonly address: number; readonly mac: string } | null;
  /** The program is at the tap. */
  readonly works: boolean;
}
export interface Learner {
  read(): Promise<readonly HeardTap[]>;
  /** At these taps and no others. */
  apply(devices: readonly number[]): Promise<void>;
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
          const address = value.readUInt32BE(8);
          const mac = value.toString("hex", 0, 6).replace(/..(?=.)/g, "$&:");
          return { device, heard: address === 0 ? null : { address, mac }, works: attachedProgram(device) === id };
        });
      });
      return found ?? [];
    },
    async apply(devices) {
      if (devices.length > 0) return withLoaded(pinned, (opened) => put(opened, devices));
      if (withPinned(pinned, (opened) => put(opened, [])) !== null) unpinObject(pinned);
    },
  };
}
/** A tap that is there no more has taken the program with it. */
function put({ maps: { heard }, programs: { learn } }: Programs, devices: readonly number[]): void {
  const keep = new Set(devices);
  for (const { key } of heard.entries()) {
    const device = key.readUInt32LE(0);
    if (keep.has(device)) continue;
    heard.delete(key);
    detachAll(device);
  }
  const id = programId(learn);
  for (const device of devices) {
    if (heard.get(numbers(device)) === null) heard.clear(numbers(device));
    if (attachedProgram(device) !== id) attach(device, learn);
  }
}
