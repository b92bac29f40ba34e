import type { LimitKey, Limits, QuotaSummary } from "../../../model/contract/tenancy/quotas.ts";
import { limitKeys, mostOfLimit } from "../../../model/contract/tenancy/quotas.ts";
import { commandOf } from "../command.ts";

/** What all cells of an account, or of all accounts in a domain, may have together, as fields have it; empty: as much as there is. */
export type QuotaForm = Readonly<Record<LimitKey, string>>;
export { limitKeys, mostOfLimit };
export const limitNames: Readonly<Record<LimitKey, string>> = {
  vms: "machines",
  memoryMiB: "MiB of memory",
  cpus: "processors",
  volumes: "volumes",
  storageMiB: "MiB of storage",
  subnets: "subnets",
  addresses: "addresses",
  publicAddresses: "public addresses",
  cells: "cells",
  units: "units of whole hosts",
};
export const formOfLimits = (limits: Limits): QuotaForm =>
  Object.fromEntries(limitKeys.map((key) => [key, limits[key] === undefined ? "" : String(limits[key])])) as QuotaForm;
export const limitsOf = (form: QuotaForm): Limits =>
  Object.fromEntries(limitKeys.flatMap((key) => (form[key].trim() === "" ? [] : [[key, Number(form[key])]])));

/** What comes of other limits, a sentence for each that is another one. */
export function quotaSays(
  before: Limits,
  { limits, granted }: Pick<QuotaSummary, "limits" | "granted">,
): readonly string[] {
  return limitKeys.flatMap((key) => {
    const [was, is] = [before[key], limits[key]];
    if (was === is) return [];
    const [name, had] = [limitNames[key], granted === null ? null : (granted[key] ?? 0)];
    const now = had === null ? "what was granted is counted from then on" : `${had} were granted`;
    if (is === undefined) return [`${name}: not limited any more (${was} until now)${had === null ? "" : `; ${now}`}`];
    const more = had !== null && had > is ? `: these stay, and no more are granted before there are fewer` : "";
    return [`${name}: ${is} at most (${was ?? "not limited"} until now); ${now}${more}`];
  });
}

export function quotaCommand(path: string, limits: Limits): string | null {
  const said = limitKeys.flatMap((key) => (limits[key] === undefined ? [] : [`${key}=${limits[key]}`]));
  return commandOf("cells quota set", path, ...(said.length === 0 ? ["none"] : said));
}

/** Of whole hosts: how many units were granted of how many, of whom that is limited. */
export const unitsSay = (quotas: readonly QuotaSummary[]): readonly string[] =>
  quotas.flatMap(({ path, limits, granted }) =>
    limits.units === undefined
      ? []
      : [
          `${path} has ${granted === null ? "an unknown part" : (granted.units ?? 0)} of ${limits.units} units of whole hosts.`,
        ],
  );
