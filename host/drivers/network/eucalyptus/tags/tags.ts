import { join } from "node:path";
import { attachBeforeClsact, isBeforeClsact } from "../../diverter/program/libbpf.ts";
import { numbers, type Opened, type PinnedObject, unpinObject, withLoaded, withPinned } from "./pinned.ts";

/*
 * Tags without 802.1Q devices, by the programs of tags.c: what is pinned outlives this process, and works on meanwhile. Nothing is loaded
 * on a machine that needs none of it.
 */

/** A device that leads to one VLAN of a wire; devices by their indices. */
export interface Tag {
  readonly wire: number;
  readonly tag: number;
  readonly device: number;
}
export interface FoundTag extends Tag {
  /** Both programs are where they belong, and know it. */
  readonly works: boolean;
}
export interface Tags {
  read(): Promise<readonly FoundTag[]>;
  /** These and no others are in place. */
  apply(wanted: readonly Tag[]): Promise<void>;
}

export const objectFile = join(import.meta.dirname, "tags.o");
const [arrives, leaves] = ["tagged_in", "tagged_out"] as const;
const maps = { groups: [8, 4], devices: [4, 8] } as const;
type Programs = Opened<keyof typeof maps, typeof arrives | typeof leaves>;

/** @param bpffs where a bpffs is mounted once something is to be pinned */
export function createTags(bpffs: string, object = objectFile): Tags {
  const pinned: PinnedObject<keyof typeof maps, typeof arrives | typeof leaves> = {
    bpffs,
    object,
    maps,
    programs: [arrives, leaves],
  };
  return {
    async read() {
      const found = withPinned(pinned, (opened) => {
        const entries = entriesOf(opened);
        // Thousands of tags are of one wire.
        const wires = new Set(entries.map(({ wire }) => wire));
        const arriving = new Set(
          [...wires].filter((wire) => isBeforeClsact(wire, "ingress", arrives, opened.programs[arrives])),
        );
        return entries.map(({ wire, tag, device, isBoth }) => ({
          wire,
          tag,
          device,
          works: isBoth && arriving.has(wire) && isBeforeClsact(device, "egress", leaves, opened.programs[leaves]),
        }));
      });
      return found ?? [];
    },
    async apply(wanted) {
      if (wanted.length > 0) return withLoaded(pinned, (opened) => put(opened, wanted));
      if (withPinned(pinned, (opened) => put(opened, [])) !== null) unpinObject(pinned);
    },
  };
}
const entriesOf = ({ maps: { groups, devices } }: Programs): readonly (Tag & { readonly isBoth: boolean })[] =>
  devices.entries().map(({ key, value }) => {
    const [wire, tag, device] = [value.readUInt32LE(0), value.readUInt32LE(4), key.readUInt32LE(0)];
    return { wire, tag, device, isBoth: groups.get(numbers(wire, tag))?.readUInt32LE(0) === device };
  });
function put(opened: Programs, wanted: readonly Tag[]): void {
  const { groups, devices } = opened.maps;
  const keep = new Set(wanted.map(({ device }) => device));
  const wires = new Set(wanted.map(({ wire }) => wire));
  const kept = new Set(wanted.map(({ wire, tag }) => `${wire} ${tag}`));
  for (const { wire, tag, device } of entriesOf(opened)) {
    if (!keep.has(device)) {
      devices.delete(numbers(device));
      attachBeforeClsact(device, "egress", leaves, null);
    }
    if (!kept.has(`${wire} ${tag}`)) groups.delete(numbers(wire, tag));
    if (!wires.has(wire)) attachBeforeClsact(wire, "ingress", arrives, null);
  }
  for (const { wire, tag, device } of wanted) {
    groups.set(numbers(wire, tag), numbers(device));
    devices.set(numbers(device), numbers(wire, tag));
    attachBeforeClsact(device, "egress", leaves, opened.programs[leaves]);
  }
  for (const wire of wires) attachBeforeClsact(wire, "ingress", arrives, opened.programs[arrives]);
}
