import { type LimitKey, limitKeys, mostOfLimit, type QuotaSummary } from "../../model/contract/tenancy/quotas.ts";
import { closestName } from "../../model/diagnostics/closest-name.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";
import { pathOf } from "./names.ts";
import { columns, found, print } from "./people.ts";

/* `cells quota`: what the cells of an account, or of all accounts in a domain, may have together. */

const amountForm = /^(?:0|[1-9][0-9]{0,12})$/;
/** `vms=3`, `memoryMiB=2048`, or `none` alone. */
export function limitsOf(words: readonly string[]): QuotaSummary["limits"] {
  if (words.length === 1 && words[0] === "none") return {};
  const limits: { [key in LimitKey]?: number } = {};
  for (const word of words) {
    const [key = "", amount = "", ...more] = word.split("=");
    const known = limitKeys.find((each) => each === key);
    if (known === undefined) {
      const closest = closestName(key, limitKeys);
      const meant = closest === undefined ? `it is one of ${limitKeys.join(", ")}` : `did you mean ${closest}?`;
      throw usage(`\`${word}\` limits nothing that there is: ${meant}`);
    }
    if (more.length > 0 || !amountForm.test(amount) || Number(amount) > mostOfLimit)
      throw usage(`\`${word}\` is no limit: write a whole number behind it, as ${known}=3, or \`none\` alone`);
    if (limits[known] !== undefined) throw usage(`${known} is limited twice: say it once`);
    limits[known] = Number(amount);
  }
  return limits;
}

const textOf = ({ limits, granted }: QuotaSummary): string =>
  limitKeys
    .flatMap((key) => {
      const most = limits[key];
      return most === undefined ? [] : [`${key} ${granted === null ? "?" : (granted[key] ?? 0)} of ${most}`];
    })
    .join(", ");

export const listQuotas = async (context: Context): Promise<void> => {
  const all = await context.client().all("listQuotas");
  const text =
    all.length === 0 ? "nothing is limited" : columns(all.map((each) => [each.path, each.kind, textOf(each)]));
  print(context, all, text);
};

export const setQuota = async (context: Context, written: string, words: readonly string[]): Promise<void> => {
  const limits = limitsOf(words);
  const path = pathOf(written);
  const client = context.client();
  const accounts = await client.all("listAccounts");
  const account = accounts.find((each) => each.path === path);
  const all = account === undefined ? await client.all("listDomains") : accounts;
  const { uid } = found("account", path, [...accounts, ...all], (each) => each.path);
  const quota = await client.ask("setQuota", { parameters: { uid }, body: { limits } });
  print(context, quota, `${quota.path}: ${textOf(quota) || "nothing is limited"}`);
};
