import type { ServerResponse } from "node:http";
import { toJson } from "../../core/outbox.ts";
import type { By } from "../../core/tenancy/actor.ts";
import type { TenancyRequest, TenancyResponse } from "../../core/tenancy/asks.ts";
import type { Sight } from "../../core/tenancy/audit/audited.ts";
import { readQuery } from "../../model/contract/request.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import { passwordLength } from "../../model/contract/tenancy/tenancy.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { sendJson, sendRefusal } from "../http/http.ts";
import { readAudit } from "../observation/read-audit.ts";
import type { RunningService } from "../process/process.ts";

export type AskService = (request: TenancyRequest) => Promise<TenancyResponse>;

/* How the service `tenancy` answers over HTTPS. */

export const send = (
  response: ServerResponse,
  { status, body, retryAfter, next }: TenancyResponse,
  more?: JsonObject,
): void =>
  sendJson(response, status, more === undefined || status >= 300 ? body : { ...(body as JsonObject), ...more }, {
    "cache-control": "no-store",
    ...(next === undefined ? {} : { [nextHeader]: next }),
    ...(typeof (body as JsonObject).etag === "string" ? { etag: `"${(body as JsonObject).etag}"` } : {}),
    ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
  });
export const busy = (response: ServerResponse): void =>
  send(response, {
    status: 503,
    body: { error: { code: "busy", message: "too many logins are under way; try again in a second" } },
    retryAfter: 1,
  });

/** It is refused then. */
export function isTooShort(password: string, response: ServerResponse): boolean {
  const { least } = passwordLength;
  if ([...password].length >= least) return false;
  sendRefusal(response, 400, "bad-request", `a password has at least ${least} characters: take several words`);
  return true;
}

export async function answerAudit(
  ask: AskService,
  audit: RunningService["audit"],
  by: By,
  url: string,
  response: ServerResponse,
): Promise<void> {
  const query = readQuery("readAudit", url);
  if (!query.ok) {
    sendRefusal(response, 400, query.error.code, query.error.message);
    return;
  }
  const answer = await ask({ kind: "audit", by });
  if (answer.status !== 200) {
    send(response, answer);
    return;
  }
  const { sees, ...head } = answer.body as unknown as Sight;
  const part = await readAudit(
    audit,
    head,
    query.value,
    sees === "all" ? sees : ({ within = [] }) => sees.some((uid) => within.includes(uid)),
  );
  send(response, { status: 200, body: toJson(part) });
}
