import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Asker } from "../../../core/controller/model/audited.ts";
import type { ChildOfRoot } from "../../../core/controller/model/owners.ts";
import type { ControllerRequest, ControllerResponse } from "../../../core/controller/requests/requests.ts";
import { rootCell } from "../../../core/documents/cells.ts";
import { toJson } from "../../../core/outbox.ts";
import type { Match } from "../../../model/contract/match.ts";
import type { RouteName } from "../../../model/contract/routes.ts";
import { decide, ruleText } from "../../../model/contract/tenancy/rules.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { sendJson, sendRefusal } from "../../http/http.ts";
import type { Refusal, Tenant } from "./tenants.ts";

/*
 * Users make and end cells of their own: a child of the root cell each, at `cells/<name>`. The root controller decides that, by a ticket which
 * the service `tenancy` gave for this one name and one account. It writes the element itself, with the account of the ticket: of what a gateway
 * sends nothing counts but the name, and of a cell of another account, or the operator's, it says what it says of one that is not there.
 */
type Ask = (request: ControllerRequest) => Promise<ControllerResponse>;
type Answer = Pick<ControllerResponse, "status" | "body" | "version">;

const verbs: Partial<Record<RouteName, string>> = {
  readElement: "cell.read",
  readHoldings: "cell.read",
  putElement: "cell.create",
  deleteElement: "cell.delete",
};
/** A change of somebody else's may come in between. */
const attempts = 20;
const againMs = 50;

const no = (status: number, code: string, message: string): { readonly refused: Refusal } => ({
  refused: { status, code, message },
});

/**
 * What a user's ticket opens at the root controller. `read`: it may be read as ever; an answer: it was done.
 * @param path as the contract has it: `root/cells/shop`
 */
export async function onChildCell(
  ask: Ask,
  tenant: Tenant,
  name: RouteName,
  path: string,
  by?: Asker,
): Promise<{ readonly refused: Refusal } | "read" | Answer> {
  const { child, account, rules, user } = tenant;
  const verb = verbs[name];
  const isOfItself = name === "readHoldings";
  if (child === undefined || verb === undefined || (!isOfItself && path !== `${rootCell}/cells/${child}`))
    return no(403, "forbidden", `${user} may not do this: what runs the cloud is for the operator's credential`);
  const decision = decide(rules, verb);
  if (!decision.allowed) {
    const why = `${ruleText(rules, decision)}; an administrator of the account can change that`;
    return no(403, "forbidden", `${user} may not do this (${verb}): ${why}`);
  }
  // What is said there is that of his account.
  if (isOfItself) return "read";
  const asked = by === undefined ? {} : { by };
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { body, version } = await ask({ method: "CHILDREN-NAMED", name: child });
    const named = body as unknown as readonly ChildOfRoot[];
    const isOwn = named.length > 0 && named.every((each) => each.account === account);
    const own = isOwn ? named.find((each) => each.path === path && !each.ending) : undefined;
    let answer: ControllerResponse;
    if (name === "putElement") {
      if (named.length > 0 && !isOwn)
        return no(409, "conflict", `the name "${child}" is taken: give the cell another one`);
      if (own !== undefined) return { status: 200, body: toJson({ version }), version };
      answer = await ask({ method: "PUT", path, ifMatch: version, json: elementOf(child, account), ...asked });
    } else {
      if (own === undefined) return no(404, "not-found", `there is no cell "${child}"`);
      if (name === "readElement") return "read";
      answer = await ask({ method: "DELETE", path, ifMatch: version, ...asked });
    }
    if (answer.status !== 412) return answer;
    await sleep(againMs);
  }
  return no(503, "busy", "the root cell is being changed by others; try again in a moment");
}

/** True: it may be read as ever. Otherwise the user was answered. */
export async function isRead(
  ask: Ask,
  tenant: Tenant,
  { name, parameters }: Match,
  { by, response }: { readonly by: Asker; readonly response: ServerResponse },
): Promise<boolean> {
  const found = await onChildCell(ask, tenant, name, parameters.path ?? "", by);
  if (found === "read") return true;
  if ("refused" in found) {
    const { status, code, message } = found.refused;
    sendRefusal(response, status, code, message);
  } else sendJson(response, found.status, found.body, { etag: `"${found.version}"` });
  return false;
}

const elementOf = (child: string, account: string): JsonObject => ({
  "x.type": "CellController",
  "x.name": child,
  "x.account": account,
  "x.cell": { [child]: { "x.type": "Cell" } } as Json,
});
