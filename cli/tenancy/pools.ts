import type { PoolHostSummary, PoolSummary, PoolUse } from "../../model/contract/tenancy/pools.ts";
import type { Client } from "../connection/client.ts";
import type { Context } from "../context/context.ts";
import { usage } from "../terminal/failure.ts";
import { pathOf } from "./names.ts";
import { columns, found, print } from "./people.ts";

/* `cells pool`: whole hosts of an account, by the names that it gave them. Which machines they are the operator alone knows. */

/** `shop/racks`, its UID, or its name where no other pool has it. */
async function poolNamed(client: Client, written: string): Promise<PoolSummary> {
  const all = await client.ask("listPools", { parameters: {} });
  const named = all.filter(({ name }) => name === written);
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  if (named.length > 1) throw usage(`there are several pools ${written}: ${named.map(({ path }) => path).join(", ")}`);
  const byUid = all.find(({ uid }) => uid === written);
  return byUid ?? found("pool", written, all, ({ path }) => path);
}
const useText = ({ cpuRatio, memoryPercent, fill, offerings, images, authorised }: PoolSummary): string =>
  [
    ...(cpuRatio === undefined ? [] : [`${cpuRatio} virtual processors each`]),
    ...(memoryPercent === undefined ? [] : [`${memoryPercent} % of memory`]),
    ...(fill === undefined ? [] : [fill === "pack" ? "packs" : "spreads"]),
    ...(offerings === undefined ? [] : [`of ${offerings.join(", ") || "no offering"}`]),
    ...(images === undefined ? [] : [`from ${images.join(", ") || "no image"}`]),
    ...(authorised === null ? [] : [authorised.length === 0 ? "for nobody" : `for ${authorised.join(", ")}`]),
  ].join("; ");
const hostText = ({ name, flavor, zone, enabled, phase, reason, vms }: PoolHostSummary): readonly string[] => [
  name,
  flavor,
  zone ?? "",
  phase === "ready" ? (enabled ? "enabled" : "disabled") : `${phase}: ${reason ?? ""}`,
  vms.length === 0 ? "no VMs" : vms.join(" "),
];

export const listPools = async (context: Context): Promise<void> => {
  const all = await context.client().ask("listPools", { parameters: {} });
  const rows = all.map((each) => [
    each.path,
    each.uid,
    `${each.hosts} host${each.hosts === 1 ? "" : "s"}`,
    useText(each),
  ]);
  print(context, all, all.length === 0 ? "no pools" : columns(rows));
};
export const showPool = async (context: Context, written: string): Promise<void> => {
  const client = context.client();
  const pool = await poolNamed(client, written);
  const hosts = await client.ask("listPoolHosts", { parameters: { uid: pool.uid } });
  const use = useText(pool);
  const head = `${pool.path} ${pool.uid}${use === "" ? "" : `\n${use}`}`;
  print(
    context,
    { ...pool, hosts },
    hosts.length === 0 ? `${head}\nno hosts` : `${head}\n${columns(hosts.map(hostText))}`,
  );
};
export const makePool = async (context: Context, written: string, use: PoolUse): Promise<void> => {
  const [cell = "", name = "", ...more] = written.split("/");
  if (cell === "" || name === "" || more.length > 0)
    throw usage(`\`${written}\` is no new pool: write the cell and a name, shop/racks`);
  const pool = await context.client().ask("addPool", { parameters: {}, body: { cell, name, ...use } });
  print(context, pool, `the pool ${pool.path} is there; VMs of other cells ask for it by ${pool.uid}`);
};
export const changePool = async (context: Context, written: string, use: PoolUse): Promise<void> => {
  const client = context.client();
  const { uid } = await poolNamed(client, written);
  const pool = await client.ask("changePool", { parameters: { uid }, body: use });
  print(context, pool, `${pool.path}: ${useText(pool) || "as elsewhere"}`);
};
export const deletePool = async (context: Context, written: string): Promise<void> => {
  const client = context.client();
  const { uid, path } = await poolNamed(client, written);
  const gone = await client.ask("deletePool", { parameters: { uid } });
  print(context, gone, `the pool ${path} is deleted`);
};
export const addPoolHost = async (
  context: Context,
  [written, name]: readonly [pool: string, name: string],
  { flavor, zone }: { readonly flavor: string; readonly zone?: string },
): Promise<void> => {
  const client = context.client();
  const { uid, path } = await poolNamed(client, written);
  const body = { name, flavor, ...(zone === undefined ? {} : { zone }) };
  const host = await client.ask("addPoolHost", { parameters: { uid }, body });
  print(
    context,
    host,
    `${path} has the host ${name}, disabled: \`cells pool enable ${written} ${name}\` has VMs come there`,
  );
};
export const enablePoolHost = async (
  context: Context,
  [written, name]: readonly [pool: string, name: string],
  enabled: boolean,
): Promise<void> => {
  const client = context.client();
  const { uid, path } = await poolNamed(client, written);
  const host = await client.ask("changePoolHost", { parameters: { uid, name }, body: { enabled } });
  const says = enabled ? "takes VMs" : "takes no new VMs; what runs there goes on";
  print(context, host, `${name} of ${path} ${says}`);
};
export const removePoolHost = async (
  context: Context,
  [written, name]: readonly [pool: string, name: string],
): Promise<void> => {
  const client = context.client();
  const { uid, path } = await poolNamed(client, written);
  const gone = await client.ask("removePoolHost", { parameters: { uid, name } });
  print(context, gone, `${name} leaves ${path}`);
};
/** `none`: nobody; `own`: the account of its cell alone, as at first. */
export const authorise = async (context: Context, written: string, accounts: readonly string[]): Promise<void> => {
  const [word] = accounts;
  const isWord = accounts.length === 1 && (word === "none" || word === "own");
  const authorised = isWord ? (word === "own" ? null : []) : accounts.map(pathOf);
  const client = context.client();
  const { uid, path } = await poolNamed(client, written);
  const said = await client.ask("setAuthorised", { parameters: { uid }, body: { authorised } });
  const whom = said.authorised === null ? "the account of its cell" : said.authorised.join(", ") || "nobody";
  print(context, said, `${path} is for ${whom}`);
};
export const listFlavors = async (context: Context): Promise<void> => {
  const all = await context.client().ask("listFlavors", { parameters: {} });
  const rows = all.map(({ name, description, units, free, hosts }) => [
    name,
    `${units} unit${units === 1 ? "" : "s"}`,
    `${free} free`,
    description,
    ...(hosts === undefined ? [] : [hosts.join(" ")]),
  ]);
  print(context, all, all.length === 0 ? "there are no host flavours" : columns(rows));
};
