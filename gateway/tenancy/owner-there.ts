import type { FastifyRequest } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { alwaysThere, isSameOwner, type Owner } from "../../model/cell/tenants/dedication/dedication.ts";
import { list, read, record, text } from "../../model/contract/schema.ts";
import type { Json } from "../../model/json/json.ts";
import { Fault } from "../../model/json/reader.ts";
import { parseJson } from "../../runtime/http/http.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { sourceHeader } from "../../runtime/observation/asked-by.ts";
import { addressOf } from "../../runtime/transport/admission.ts";
import { listPeers } from "../../runtime/transport/peers.ts";
import { refused } from "../requests/refused.ts";
import type { OwnerThere } from "../requests/whole-hosts.ts";
import { askTenancy, refusalOfTenancy } from "./tenants.ts";

const tenancy = peerName("tenancy");
const all = list(record<{ readonly path: string }>({ path: text() }));
const mostNamed = 20;

/**
 * Whether a domain or an account is there, as `tenancy` says it to who asks: the root controller keeps no table of them, and would keep a host for somebody who never comes.
 * Where it is not in the book nobody can say so but of the two that are always there.
 */
export const ownerThere =
  (configuration: ProcessConfiguration) =>
  ({ headers, raw }: FastifyRequest): OwnerThere => {
    // One request may ask of many owners.
    const ask = onceEach(async (path) => {
      const { authorization } = headers;
      const answer = await askTenancy(configuration, {
        method: "GET",
        path,
        body: null,
        headers: {
          [sourceHeader]: addressOf(raw.socket),
          ...(authorization === undefined ? {} : { authorization }),
        },
      });
      if (answer.status !== 200) throw refusalOfTenancy(answer);
      const said = parseJson(answer.text);
      return said.ok ? said.value : null;
    });
    return async (owner) => {
      if (alwaysThere.some((each) => isSameOwner(each, owner))) return;
      if (!(await listPeers(configuration, tenancy)).includes(tenancy)) {
        const why = "which says who there is, is not in this installation's book now";
        throw refused(
          503,
          "tenancy-unreachable",
          `whether there is ${owner.kind === "domain" ? "a domain" : "an account"} ${owner.path} nobody can say: the service tenancy, ${why}`,
        );
      }
      await lookFor(owner, ask);
    };
  };

/** Each list is fetched once, however many are looked for in it. */
export function onceEach(ask: (path: string) => Promise<Json>): (path: string) => Promise<Json> {
  const asked = new Map<string, Promise<Json>>();
  return (path) => {
    const before = asked.get(path) ?? ask(path);
    asked.set(path, before);
    return before;
  };
}

export async function lookFor({ kind, path }: Owner, ask: (path: string) => Promise<Json>): Promise<void> {
  const found = read(all, await ask(kind === "domain" ? "/domains" : "/accounts"));
  if (found instanceof Fault)
    throw refused(502, "tenancy-unreachable", `what the service tenancy says cannot be read: ${found}`);
  if (found.some((each) => each.path === path)) return;
  const named = found.slice(0, mostNamed).map((each) => each.path);
  const more = found.length > named.length ? `, and ${found.length - named.length} more` : "";
  const there = named.length === 0 ? "none is there" : `there are ${named.join(", ")}${more}`;
  throw refused(400, "bad-request", `there is no ${kind} ${path}: ${there}`);
}
