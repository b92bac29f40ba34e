import type { ServerResponse } from "node:http";
import type { TenancyResponse } from "../../core/tenancy/asks.ts";
import { nextHeader } from "../../model/contract/tenancy/pages.ts";
import { passwordLength } from "../../model/contract/tenancy/tenancy.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { sendJson, sendRefusal } from "../http/http.ts";

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
