import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a host limits for its VMs. */
const wanted = ["cpu", "memory", "pids"] as const;

interface Mount {
  readonly point: string;
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
}

/** Mounted control group hierarchies, from the text of `/proc/self/mounts`. */
export const cgroupMounts = (mounts: string): readonly Mount[] =>
  mounts.split("\n").flatMap((line): readonly Mount[] => {
    const [, point, type, options] = line.split(" ");
    if (point === undefined || options === undefined) return [];
    if (type === "cgroup2") return [{ point, version: 2, controllers: [] }];
    return type === "cgroup" ? [{ point, version: 1, controllers: options.split(",") }] : [];
  });

/** Path inside a hierarchy (a v1 controller, or "" for v2), from the text of `/proc/self/cgroup`. */
export const ownCgroup = (memberships: string, controller: string): string | undefined => {
  for (const line of memberships.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers?.split(",").includes(controller)) return path;
  }
  return undefined;
};

/**
 * The directories that this testbed may fill, one per hierarchy, below the group that the caller sits in: limits set
 * from outside on that group go on holding for everything in the testbed. None of them exists yet.
 */
export const cgroupRoots = (tag: string): readonly string[] => {
  const mounts = cgroupMounts(readFileSync("/proc/self/mounts", "utf8"));
  const memberships = readFileSync("/proc/self/cgroup", "utf8");
  const roots = new Set<string>();
  for (const controller of wanted) {
    const mount = mounts.find(({ version, controllers }) => version === 1 && controllers.includes(controller));
    const own = ownCgroup(memberships, controller);
    if (mount !== undefined && own !== undefined) roots.add(join(mount.point, own, tag));
  }
  if (roots.size > 0) return [...roots];
  const unified = mounts.find(({ version }) => version === 2);
  const own = ownCgroup(memberships, "");
  return unified === undefined || own === undefined ? [] : [join(unified.point, own, tag)];
};

/** In v2 a group's children have a controller only where it was handed down. Refused where processes sit beside them. */
const handDown = (directory: string): void => {
  if (!existsSync(join(directory, "cgroup.subtree_control"))) return;
  for (const controller of wanted) {
    try {
      writeFileSync(join(directory, "cgroup.subtree_control"), `+${controller}`);
    } catch {
      // Not this controller, then: `canLimit` sees what came of it.
    }
  }
};

const canLimit = (directory: string): boolean =>
  ["memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.shares", "pids.max"].some((file) =>
    existsSync(join(directory, file)),
  );

/** Makes a host's parent groups; only those where limits can be set are returned, so possibly none. */
export const makeCgroups = (roots: readonly string[], host: string): readonly string[] =>
  roots.flatMap((root) => {
    try {
      handDown(join(root, ".."));
      mkdirSync(root, { recursive: true });
      handDown(root);
      const own = join(root, host);
      mkdirSync(own, { recursive: true });
      handDown(own);
      return canLimit(own) ? [own] : [];
    } catch {
      return [];
    }
  });

/** Deepest first: a control group can be removed only when nothing is below it. False while something is still in it. */
export const removeCgroups = (root: string): boolean => {
  if (!existsSync(root)) return true;
  let empty = true;
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (entry.isDirectory()) empty = removeCgroups(join(root, entry.name)) && empty;
  }
  if (!empty) return false;
  try {
    rmdirSync(root);
    return true;
  } catch {
    return !existsSync(root);
  }
};
