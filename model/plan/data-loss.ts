import type { ElementPath } from "../cell/identifiers.ts";
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import type { DataLoss, Plan, PlanStep } from "./plan-types.ts";

/*
 * Data is destroyed only if somebody named it. A plan that is right and was confirmed may still take a disk along that
 * nobody thought of, so whoever sends a change names every volume whose bytes go with it; a group or a cell as a whole
 * names none. What holds nothing of its own needs no name: a volume that cannot be written (`x.access "ro"`), and one
 * that no VM was ever given; if that is a copy, only where its origin stays or holds nothing of its own either, for it may
 * be somebody's backup. Naming a volume that stays harms nothing, so that a script can run twice.
 */

/** The steps of a plan with which data is lost. */
export const losesOf = (plan: Plan): readonly PlanStep[] => plan.steps.filter(({ losesData }) => losesData);

/**
 * Those of them that `allowed` does not name. Each of its texts is a path or several with commas in between; slashes at
 * their ends mean nothing.
 */
export function unnamedLosses(plan: Plan, allowed: readonly string[]): readonly PlanStep[] {
  const clean = (text: string): string => text.trim().replace(/^\/+|\/+$/g, "");
  // A name may hold a comma, so that the whole text may be one path too.
  const named = new Set(allowed.flatMap((text) => [text, ...text.split(",")]).map(clean));
  return losesOf(plan).filter(({ path }) => !named.has(path));
}

/** `up to 64 MiB that were written since it was made from the image "tiny"` */
export function lossText({ sizeMiB, image, copyOf }: DataLoss): string {
  const most = sizeMiB === null ? "all" : `up to ${sizeMiB} MiB`;
  const were = sizeMiB === null || sizeMiB === 1 ? "was" : "were";
  if (image !== undefined) return `${most} that ${were} written since it was made from the image "${image}"`;
  if (copyOf !== undefined) return `${most} that ${were} written since it was copied from ${copyOf}`;
  return `${most} that ${were} written to it`;
}

/** What the command line needs to permit it, ready to be pasted into a shell. */
export function allowDestroyFlag(paths: readonly ElementPath[]): string {
  const plain = (path: string): boolean => /^[\w./-]+$/.test(path);
  const quoted = paths.filter((path) => !plain(path)).map((path) => `'${path.replaceAll("'", "'\\''")}'`);
  const joined = paths.filter(plain).join(",");
  return [...(joined === "" ? [] : [joined]), ...quoted].map((value) => `--allow-destroy ${value}`).join(" ");
}

/** Each loss as a person reads it, a line each without an end. */
export const lossLines = (losses: readonly PlanStep[]): readonly string[] =>
  losses.map(({ path, type, action, loss }) => {
    const how = action === "replace" ? "replaced" : "deleted";
    return `${path} (${type}) is ${how}: ${loss === undefined ? "its data" : lossText(loss)} would be lost`;
  });

/** Why a change that destroys data nobody named is refused: every volume, what would be lost, and what permits it. */
export function destroysDataRefusal(losses: readonly PlanStep[]): {
  readonly code: string;
  readonly message: string;
  readonly diagnostics: readonly Diagnostic[];
} {
  const lines = lossLines(losses);
  const paths = losses.map(({ path }) => path);
  const them = paths.length === 1 ? "a volume that was not named" : `${paths.length} volumes that were not named`;
  const message = [
    `this would destroy the data of ${them}; nothing was changed:`,
    ...lines.map((line) => `  ${line}`),
    `If that is meant, add ${allowDestroyFlag(paths)}`,
    `(in the API: ?${paths.map((path) => `allowDestroy=${encodeURIComponent(path).replaceAll("%2F", "/")}`).join("&")})`,
  ].join("\n");
  const diagnostics = losses.map(({ path }, index) => ({
    code: destroysData,
    message: lines[index] ?? "",
    path,
    hint: `If that is meant, add ${allowDestroyFlag([path])}`,
  }));
  return { code: destroysData, message, diagnostics };
}

/** Code of the refusal and of its diagnostics. */
export const destroysData = "change/destroys-data";
