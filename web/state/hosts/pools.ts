import { isLabel } from "../../../model/cell/child-document.ts";
import { fills } from "../../../model/cell/tenants/pools/attributes.ts";
import type { PoolSummary } from "../../../model/contract/tenancy/pools.ts";
import type { ElementChange } from "../../../model/editor/patches/patches.ts";
import type { Json } from "../../../model/json/json.ts";
import { commandOf, withOptions } from "../command.ts";

export { fills };
export const fillSays: Readonly<Record<(typeof fills)[number], string>> = {
  spread: "the emptiest of its hosts first",
  pack: "the fullest that has room first",
};

/** How a pool is used, as fields have it; empty: as elsewhere. */
export interface PoolForm {
  readonly cpuRatio: string;
  readonly memoryPercent: string;
  readonly fill: string;
  /** Whether others than the account of its cell are named. */
  readonly isNamed: boolean;
  /** Paths of accounts, with blanks, commas or lines in between. */
  readonly authorised: string;
}
export const formOfPool = ({ cpuRatio, memoryPercent, fill, authorised }: PoolSummary): PoolForm => ({
  cpuRatio: cpuRatio === undefined ? "" : String(cpuRatio),
  memoryPercent: memoryPercent === undefined ? "" : String(memoryPercent),
  fill: fill ?? "",
  isNamed: authorised !== null,
  authorised: (authorised ?? []).join("\n"),
});
export const wordsIn = (text: string): readonly string[] => text.split(/[\s,]+/).filter((word) => word !== "");

const poolAttributes = (form: PoolForm): Readonly<Record<string, Json | null>> => ({
  "x.cpuRatio": form.cpuRatio.trim() === "" ? null : Number(form.cpuRatio),
  "x.memoryPercent": form.memoryPercent.trim() === "" ? null : Number(form.memoryPercent),
  "x.fill": form.fill === "" ? null : form.fill,
  "x.authorised": form.isNamed ? wordsIn(form.authorised) : null,
});
export const poolFields = ["x.cpuRatio", "x.memoryPercent", "x.fill", "x.authorised"] as const;
/** What of the pool is another; null: nothing. */
export function poolChange(pool: PoolSummary, form: PoolForm): ElementChange | null {
  const before = poolAttributes(formOfPool(pool));
  const other = Object.entries(poolAttributes(form)).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  return other.length === 0 ? null : { kind: "set", path: pool.path, attributes: Object.fromEntries(other) };
}

/** What the command line would do the same by. */
export function poolCommands(pool: PoolSummary, form: PoolForm): readonly (string | null)[] {
  const before = formOfPool(pool);
  const options = [
    ["--cpu-ratio", form.cpuRatio.trim()],
    ["--memory-percent", form.memoryPercent.trim()],
    ["--fill", form.fill],
  ].filter(([, value]) => value !== "");
  const others = [
    ...(pool.offerings ?? []).map((each) => ["--offerings", each]),
    ...(pool.images ?? []).map((each) => ["--images", each]),
  ];
  const isUsed = (["cpuRatio", "memoryPercent", "fill"] as const).some((name) => form[name].trim() !== before[name]);
  const isOthers = form.isNamed !== before.isNamed || form.authorised !== before.authorised;
  const named = wordsIn(form.authorised);
  const whose = form.isNamed ? (named.length === 0 ? ["none"] : named) : ["own"];
  return [
    ...(isUsed ? [withOptions("cells pool set", pool.path, [...options, ...others])] : []),
    ...(isOthers ? [commandOf("cells pool authorise", pool.path, ...whose)] : []),
  ];
}

export interface FlavorForm {
  readonly name: string;
  readonly description: string;
  readonly units: number;
}
export const flavorFields = ["x.description", "x.units"] as const;
/** Why a new one cannot be called so, a sentence; null: it can. */
export function whyNoFlavor(name: string, names: readonly string[]): string | null {
  if (!isLabel(name)) return "It has small letters, digits and -, 63 at most, - neither first nor last.";
  return names.includes(name) ? `There is a flavour ${name} already.` : null;
}
export const flavorPath = (name: string): string => `root/flavors/${name}`;
/** @param before null: it is new */
export function flavorChange(before: Omit<FlavorForm, "name"> | null, form: FlavorForm): ElementChange | null {
  const path = flavorPath(form.name);
  const description = form.description.trim();
  if (before === null) {
    const attributes = { ...(description === "" ? {} : { "x.description": description }), "x.units": form.units };
    return { kind: "add", path, type: "HostFlavor", attributes };
  }
  const attributes = {
    ...(description === before.description ? {} : { "x.description": description === "" ? null : description }),
    ...(form.units === before.units ? {} : { "x.units": form.units }),
  };
  return Object.keys(attributes).length === 0 ? null : { kind: "set", path, attributes };
}
