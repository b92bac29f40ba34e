import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mountBpffs, removePins, unmountBpffs } from "../../diverter/program/dataplane.ts";
import {
  attachBeforeClsact,
  BpfMap,
  close,
  isBeforeClsact,
  loadObject,
  openPinned,
} from "../../diverter/program/libbpf.ts";

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

interface Opened {
  readonly groups: BpfMap;
  readonly devices: BpfMap;
  readonly [arrives]: number;
  readonly [leaves]: number;
}
const numbers = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32LE(value, 4 * at);
  return bytes;
};

/** @param bpffs where a bpffs is mounted once something is to be pinned */
export function createTags(bpffs: string, object = objectFile): Tags {
  const [root, maps] = [join(bpffs, "tags"), join(bpffs, "tags", "maps")];
  let version = "";
  const programDirectory = (): string => {
    if (version === "") version = createHash("sha256").update(readFileSync(object)).digest("hex").slice(0, 16);
    return join(root, `programs_${version}`);
  };
  /** Of this version; null: its pins are not there. */
  const open = (): Opened | null => {
    if (!existsSync(root)) return null;
    const programs = programDirectory();
    const paths = [join(maps, "groups"), join(maps, "devices"), join(programs, arrives), join(programs, leaves)];
    const found = paths.every((path) => existsSync(path)) ? paths.map(openPinned) : [];
    const [groups, devices, into, out] = found;
    if (groups == null || devices == null || into == null || out == null) {
      for (const fd of found) if (fd !== null) close(fd);
      return null;
    }
    return { groups: new BpfMap(groups, 8, 4), devices: new BpfMap(devices, 4, 8), tagged_in: into, tagged_out: out };
  };
  const load = (): void => {
    mountBpffs(bpffs);
    const put = (): void => {
      if (existsSync(root))
        for (const name of readdirSync(root)) if (name.startsWith("programs_")) removePins(join(root, name));
      mkdirSync(maps, { recursive: true });
      mkdirSync(programDirectory(), { recursive: true });
      loadObject(object, ["groups", "devices"], maps, [arrives, leaves], programDirectory());
    };
    // Another version's maps are taken over, if they are of the same form: by them is known what is attached of it.
    try {
      put();
    } catch (error) {
      if (!existsSync(maps)) throw error;
      removePins(root);
      put();
    }
  };
  const using = <T>(opened: Opened, work: (opened: Opened) => T): T => {
    try {
      return work(opened);
    } finally {
      opened.groups.close();
      opened.devices.close();
      close(opened[arrives]);
      close(opened[leaves]);
    }
  };
  const entriesOf = ({ groups, devices }: Opened): readonly (Tag & { readonly isBoth: boolean })[] =>
    devices.entries().map(({ key, value }) => {
      const [wire, tag, device] = [value.readUInt32LE(0), value.readUInt32LE(4), key.readUInt32LE(0)];
      return { wire, tag, device, isBoth: groups.get(numbers(wire, tag))?.readUInt32LE(0) === device };
    });
  return {
    async read() {
      const opened = open();
      if (opened === null) return [];
      return using(opened, () =>
        entriesOf(opened).map(({ wire, tag, device, isBoth }) => ({
          wire,
          tag,
          device,
          works:
            isBoth &&
            isBeforeClsact(wire, "ingress", arrives, opened[arrives]) &&
            isBeforeClsact(device, "egress", leaves, opened[leaves]),
        })),
      );
    },
    async apply(wanted) {
      let opened = open();
      if (opened === null && wanted.length === 0) return;
      if (opened === null) load();
      opened ??= open();
      if (opened === null) throw new Error(`the programs for tags were loaded and are not pinned below ${root}`);
      using(opened, ({ groups, devices }) => {
        const keep = new Set(wanted.map(({ device }) => device));
        const wires = new Set(wanted.map(({ wire }) => wire));
        const before = entriesOf(opened);
        const kept = new Set(wanted.map(({ wire, tag }) => `${wire} ${tag}`));
        for (const { wire, tag, device } of before) {
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
          attachBeforeClsact(device, "egress", leaves, opened[leaves]);
        }
        for (const wire of wires) attachBeforeClsact(wire, "ingress", arrives, opened[arrives]);
      });
      if (wanted.length > 0) return;
      removePins(root);
      unmountBpffs(bpffs);
    },
  };
}
