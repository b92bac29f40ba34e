import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mountBpffs, removePins, unmountBpffs } from "../../diverter/program/dataplane.ts";
import { BpfMap, close, loadObject, openPinned } from "../../diverter/program/libbpf.ts";

/**
 * An object's programs and maps, pinned so that they outlive this process. Of another version the maps are taken over, if they are of the same
 * form: by them is known what is attached of it. A bpffs is mounted once something is to be pinned.
 */
export interface PinnedObject<M extends string, P extends string> {
  readonly bpffs: string;
  /** The compiled object. */
  readonly object: string;
  /** Sizes of keys and values. */
  readonly maps: Readonly<Record<M, readonly [key: number, value: number]>>;
  readonly programs: readonly P[];
}
export interface Opened<M extends string, P extends string> {
  readonly maps: { readonly [name in M]: BpfMap };
  /** Descriptors. */
  readonly programs: { readonly [name in P]: number };
}

const versions = new Map<string, string>();
const placesOf = ({ bpffs, object }: PinnedObject<string, string>) => {
  const version = versions.get(object) ?? createHash("sha256").update(readFileSync(object)).digest("hex").slice(0, 16);
  versions.set(object, version);
  const root = join(bpffs, "pinned");
  return { root, maps: join(root, "maps"), programs: join(root, `programs_${version}`) };
};
const namesOf = <T extends string>(of: Readonly<Record<T, unknown>>): readonly T[] => Object.keys(of) as T[];

/** Works with what is pinned of this version; null: nothing is. */
export function withPinned<M extends string, P extends string, T>(
  pinned: PinnedObject<M, P>,
  work: (opened: Opened<M, P>) => T,
): T | null {
  if (!existsSync(join(pinned.bpffs, "pinned"))) return null;
  const places = placesOf(pinned);
  const descriptors: number[] = [];
  const open = (path: string): number | null => {
    const fd = existsSync(path) ? openPinned(path) : null;
    if (fd !== null) descriptors.push(fd);
    return fd;
  };
  try {
    const maps = namesOf(pinned.maps).map((name) => [name, open(join(places.maps, name))] as const);
    const programs = pinned.programs.map((name) => [name, open(join(places.programs, name))] as const);
    if ([...maps, ...programs].some(([, fd]) => fd === null)) return null;
    const opened = {
      maps: Object.fromEntries(
        maps.map(([name, fd]) => [name, new BpfMap(fd ?? -1, pinned.maps[name][0], pinned.maps[name][1])]),
      ),
      programs: Object.fromEntries(programs),
    };
    return work(opened as Opened<M, P>);
  } finally {
    for (const fd of descriptors) close(fd);
  }
}
/** Loads what is not pinned yet. */
export function withLoaded<M extends string, P extends string, T>(
  pinned: PinnedObject<M, P>,
  work: (opened: Opened<M, P>) => T,
): T {
  const found = withPinned(pinned, (opened) => [work(opened)] as const);
  if (found !== null) return found[0];
  mountBpffs(pinned.bpffs);
  const { root, maps, programs } = placesOf(pinned);
  const put = (): void => {
    if (existsSync(root))
      for (const name of readdirSync(root)) if (name.startsWith("programs_")) removePins(join(root, name));
    mkdirSync(maps, { recursive: true });
    mkdirSync(programs, { recursive: true });
    loadObject(pinned.object, namesOf(pinned.maps), maps, pinned.programs, programs);
  };
  try {
    put();
  } catch (error) {
    if (readdirSync(maps).length === 0) throw error;
    removePins(root);
    put();
  }
  const made = withPinned(pinned, (opened) => [work(opened)] as const);
  if (made === null) throw new Error(`${pinned.object} was loaded and is not pinned below ${root}`);
  return made[0];
}
/** Nothing of it is left, but what is attached. */
export function unpinObject({ bpffs }: Pick<PinnedObject<string, string>, "bpffs">): void {
  removePins(join(bpffs, "pinned"));
  unmountBpffs(bpffs);
}
export const numbers = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32LE(value, 4 * at);
  return bytes;
};
