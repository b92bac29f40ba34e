import type { Changed } from "../../../model/api.ts";
import {
  type Dedications,
  dedicate,
  type Guest,
  groupOf,
  type Owner,
  ownerText,
  type Resource,
  type Tree,
  upFrom,
} from "../../../model/cell/tenants/dedication/dedication.ts";
import { elementsOf } from "../../../model/contract/follow/rows.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import { type Client, Refused } from "../../connection/client.ts";
import { type Context, pathIn, printJson } from "../../context/context.ts";
import { pathOf } from "../../tenancy/names.ts";
import { columns, print } from "../../tenancy/people.ts";
import { CommandFailure, exitCodes, usage } from "../../terminal/failure.ts";
import { conflict, overtaken } from "../model/change.ts";

/*
 * `cells dedicate`, `cells release` and `cells dedications`: whose a zone, pod, cluster or host is. What they write are elements of the root
 * cell, `root/dedications/<name>`; the root controller decides. What it cannot see, which VMs of whom run there, is looked at here.
 */
const [root, at] = ["root", "root/dedications"] as const;

interface Known {
  readonly tree: Tree;
  readonly dedications: Dedications;
  /** Names of the elements, by resource. */
  readonly names: ReadonlyMap<string, string>;
  /** Accounts of cells, by name. */
  readonly accounts: ReadonlyMap<string, string>;
}
const text = (component: JsonObject, name: string): string | undefined => {
  const value = component[name];
  return typeof value === "string" ? value : undefined;
};
const below = (component: Json | undefined): readonly (readonly [string, JsonObject])[] =>
  isObject(component)
    ? Object.entries(component).flatMap(([name, value]) =>
        isObject(value) && name !== "$state" && !name.startsWith("x.") ? [[name, value] as const] : [],
      )
    : [];

async function look(client: Client): Promise<Known> {
  const model = await client.model(root, "", false);
  const cell = isObject(model) && isObject(model.root) ? model.root : {};
  const tree = new Map<string, Resource>();
  for (const [zone, pods] of below(cell.places)) {
    tree.set(zone, { level: "zone", above: null });
    for (const [pod, clusters] of below(pods)) {
      tree.set(`${zone}/${pod}`, { level: "pod", above: zone });
      for (const [cluster] of below(clusters))
        tree.set(`${zone}/${pod}/${cluster}`, { level: "cluster", above: `${zone}/${pod}` });
    }
  }
  for (const [host, written] of below(cell.hosts))
    tree.set(host, { level: "host", above: text(written, "x.cluster") ?? null });
  const [dedications, names] = [new Map<string, Owner>(), new Map<string, string>()];
  for (const [name, written] of below(cell.dedications)) {
    const [of, to, account] = [text(written, "x.of"), text(written, "x.to"), text(written, "x.account")];
    if (of === undefined || to === undefined) continue;
    dedications.set(
      of,
      account === undefined ? { kind: "domain", path: to } : { kind: "account", path: `${to}/${account}` },
    );
    names.set(of, name);
  }
  return { tree, dedications, names, accounts: accountsIn(cell) };
}
function accountsIn(component: JsonObject): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of below(component)) {
    const account = text(value, "x.account");
    if (value["x.type"] === "CellController" && account !== undefined)
      found.set(text(value, "x.name") ?? name, account);
    else for (const each of accountsIn(value)) found.set(...each);
  }
  return found;
}

/** VMs of accounts at hosts in a resource. A cell that does not answer may have some there: that is said. */
async function guestsIn(client: Client, { tree, accounts }: Known, of: string, warn: (line: string) => void) {
  const guests: Guest[] = [];
  for (const { cell } of await client.cells()) {
    const account = accounts.get(cell.slice(cell.lastIndexOf(".") + 1));
    if (cell === root) continue;
    try {
      for (const { path, type, state } of elementsOf(await client.model(cell, "", true), "")) {
        const host = state.host ?? null;
        if (type !== "VM" || host === null || ![...upFrom(tree, host)].includes(of)) continue;
        guests.push({ vm: pathIn(cell, path), host, account: account ?? "ROOT/operator" });
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status !== 404) warn(`the cell ${cell} does not answer, and may have VMs there: ${error.message}`);
    }
  }
  return guests;
}

/** Whose path it is; a domain and an account never have the same one. */
async function ownerAt(client: Client, written: string): Promise<Owner> {
  const path = pathOf(written);
  for (const [kind, list] of [
    ["domain", "listDomains"],
    ["account", "listAccounts"],
  ] as const) {
    const all: readonly { readonly path: string }[] = await client.all(list);
    if (all.some((each) => each.path === path)) return { kind, path };
  }
  const meant = "`cells domain list` and `cells account list` show them";
  throw new CommandFailure(exitCodes.refused, `there is no domain and no account ${path}: ${meant}`);
}

const refuse = (why: string, hint: string): CommandFailure => new CommandFailure(exitCodes.refused, `${why}\n${hint}`);
/** A label that no other dedication has. */
function freeName(of: string, { names }: Known): string {
  const [taken, wanted] = [new Set(names.values()), of.replaceAll("/", "-").slice(0, 50)];
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    if (!taken.has(name)) return name;
  }
}
const changing = async (
  work: (dryRun: boolean, version?: number) => Promise<Changed>,
  again: string,
): Promise<void> => {
  const { version } = await work(true);
  await work(false, version).catch((error: unknown) => {
    throw overtaken(error) ? conflict(root, error, again) : error;
  });
};

export const dedicateResource = async (
  context: Context,
  of: string,
  { to: written, dryRun }: { readonly to: string; readonly dryRun: boolean },
): Promise<void> => {
  const { terminal, json } = context;
  const client = context.client();
  const known = await look(client);
  if (!known.tree.has(of)) {
    const all = [...known.tree.keys()].sort();
    throw usage(
      `there is no zone, pod, cluster or host ${of}; ${all.length === 0 ? "none has joined" : `there are ${all.join(", ")}`}`,
    );
  }
  const to = await ownerAt(client, written);
  const guests = await guestsIn(client, known, of, terminal.warn);
  const outcome = dedicate(known.tree, known.dedications, of, to, guests);
  if (!outcome.ok) throw refuse(outcome.refused.why, outcome.refused.hint);
  const name = freeName(of, known);
  const slash = to.path.lastIndexOf("/");
  const owner: JsonObject =
    to.kind === "domain"
      ? { "x.to": to.path }
      : { "x.to": to.path.slice(0, slash), "x.account": to.path.slice(slash + 1) };
  const element: JsonObject = { "x.type": "Dedication", "x.of": of, ...owner };
  await changing(
    (isDry, version) =>
      isDry || dryRun
        ? client.put(root, `${at}/${name}`, element, true)
        : client.put(root, `${at}/${name}`, element, false, version === undefined ? {} : { version }),
    "The same command",
  );
  if (json) return printJson(context, { of, to, released: outcome.released, dryRun });
  for (const each of outcome.released) terminal.print(`${each} goes into it`);
  terminal.print(`${of} ${dryRun ? "would be" : "is"} dedicated to ${ownerText(to)}`);
  terminal.print(`VMs ask for it with \`x.placement.groups "${groupOf(to)}"\``);
};

export const releaseResource = async (context: Context, of: string): Promise<void> => {
  const client = context.client();
  const { names, dedications } = await look(client);
  const name = names.get(of);
  if (name === undefined) {
    const all = [...dedications.keys()].sort().join(", ");
    throw usage(`${of} is dedicated to nobody; ${all === "" ? "nothing is" : `what is dedicated: ${all}`}`);
  }
  await changing(
    (isDry, version) => client.delete(root, `${at}/${name}`, isDry, version === undefined ? {} : { version }),
    "The same command",
  );
  print(context, { of }, `${of} is released; VMs that run there stay`);
};

export const listDedications = async (context: Context): Promise<void> => {
  const { tree, dedications } = await look(context.client());
  const all = [...dedications]
    .map(([of, to]) => ({ of, level: tree.get(of)?.level ?? null, to, group: groupOf(to) }))
    .sort((one, other) => (one.of < other.of ? -1 : 1));
  const rows = all.map(({ of, level, to, group }) => [of, level ?? "", ownerText(to), group]);
  print(context, all, all.length === 0 ? "nothing is dedicated: every host is everybody's" : columns(rows));
};
