import type { Changed } from "../../../model/api.ts";
import {
  dedicate,
  type Guest,
  groupOf,
  type Owner,
  ownerText,
  upFrom,
} from "../../../model/cell/tenants/dedication/dedication.ts";
import {
  dedicationElement,
  freeName,
  type Written,
  writtenIn,
} from "../../../model/cell/tenants/dedication/written.ts";
import { elementsOf } from "../../../model/contract/follow/rows.ts";
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

const look = async (client: Client): Promise<Written> => writtenIn(await client.model(root, "", false));

/** VMs of accounts at hosts in a resource. A cell that does not answer may have some there: that is said. */
async function guestsIn(client: Client, { tree, accounts }: Written, of: string, warn: (line: string) => void) {
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
export async function ownerAt(client: Client, written: string): Promise<Owner> {
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
  const element = dedicationElement(of, to);
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
