import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { type MapName, mapNames, mapSizes, word } from "./layout.ts";
import { BpfMap, close, loadObject, openPinned } from "./libbpf.ts";

/**
 * The programs and maps in the kernel, pinned so that they outlive this process: a Host Manager that comes back opens the
 * pins and finds everything as it left it, with the filters still attached and working all the while.
 */
export interface Dataplane {
  readonly maps: { readonly [name in MapName]: BpfMap };
  readonly programs: { readonly [name in ProgramName]: number };
  /** What was there before: everything, the maps alone (the programs were another version's), or nothing. */
  readonly adopted: "all" | "maps" | "nothing";
}
const programNames = ["from_vm", "from_wire", "from_outside", "from_service", "fan_out", "fan_in"] as const;
/** Programs that others go on with, in the order of `enum part`. */
const parts = ["fan_out", "fan_in"] as const satisfies readonly ProgramName[];
export type ProgramName = (typeof programNames)[number];
export const objectFile = join(import.meta.dirname, "diverter.o");
const perCpu: readonly MapName[] = ["counters", "rule_counts"];

const isMounted = (directory: string): boolean =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .some((line) => line.split(" ")[4] === directory && line.includes(" - bpf "));

/** Mounts a bpffs at the directory unless one is there. */
export function mountBpffs(directory: string): void {
  mkdirSync(directory, { recursive: true });
  if (!isMounted(directory)) execFileSync("mount", ["-t", "bpf", "bpf", directory]);
}
export function unmountBpffs(directory: string): void {
  if (isMounted(directory)) execFileSync("umount", [directory]);
}

function openAll(mapDirectory: string, programDirectory: string): Omit<Dataplane, "adopted"> | null {
  const paths = [
    ...mapNames.map((name) => join(mapDirectory, name)),
    ...programNames.map((name) => join(programDirectory, name)),
  ];
  if (!paths.every((path) => existsSync(path))) return null;
  const descriptor = (path: string): number => {
    const fd = openPinned(path);
    if (fd === null) throw new Error(`${path} is pinned but cannot be opened; is another process taking it away?`);
    return fd;
  };
  const maps = mapNames.map((name) => {
    const [keySize, valueSize] = mapSizes[name];
    return [name, new BpfMap(descriptor(join(mapDirectory, name)), keySize, valueSize, perCpu.includes(name))];
  });
  const programs = programNames.map((name) => [name, descriptor(join(programDirectory, name))]);
  return { maps: Object.fromEntries(maps), programs: Object.fromEntries(programs) };
}

/** Takes away all that is pinned in a directory, and the directory. */
export function removePins(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) removePins(path);
    else unlinkSync(path);
  }
  rmSync(directory, { recursive: true });
}

/**
 * Opens what is pinned below `bpffs`, or loads the compiled object. Programs of another version are replaced, and the maps
 * taken over if their layouts are the same; otherwise all starts anew, closed.
 *
 * @param object absent: the committed one
 */
export function openDataplane(bpffs: string, object = objectFile): Dataplane {
  const root = join(bpffs, "diverter");
  const mapDirectory = join(root, "maps");
  const version = createHash("sha256").update(readFileSync(object)).digest("hex").slice(0, 16);
  const programDirectory = join(root, `programs_${version}`);
  const found = openAll(mapDirectory, programDirectory);
  if (found !== null) return { ...found, adopted: "all" };
  const hadMaps = existsSync(mapDirectory);
  const load = (): void => {
    if (existsSync(root))
      for (const name of readdirSync(root)) if (name.startsWith("programs_")) removePins(join(root, name));
    mkdirSync(mapDirectory, { recursive: true });
    mkdirSync(programDirectory, { recursive: true });
    loadObject(object, mapNames, mapDirectory, programNames, programDirectory);
  };
  let adopted: Dataplane["adopted"] = hadMaps ? "maps" : "nothing";
  try {
    load();
  } catch (problem) {
    if (!hadMaps) throw problem;
    removePins(root);
    adopted = "nothing";
    load();
  }
  const opened = openAll(mapDirectory, programDirectory);
  for (const [at, name] of parts.entries())
    opened?.maps.parts.set(word.encode({ value: at }), word.encode({ value: opened.programs[name] }));
  if (opened === null) throw new Error(`the Diverter's maps were loaded but are not pinned below ${root}`);
  return { ...opened, adopted };
}

export function closeDataplane(dataplane: Dataplane): void {
  for (const map of Object.values(dataplane.maps)) map.close();
  for (const fd of Object.values(dataplane.programs)) close(fd);
}
export const unpin = (bpffs: string): void => removePins(join(bpffs, "diverter"));
