import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { cookieName, pageHeader } from "../../model/contract/tenancy/sign-in.ts";
import { type RefusedError, refused } from "../requests/refused.ts";

/**
 * A browser sends a cookie with whatever asks for it to be sent, so of a request with one the gateway wants to know that its own page made it. `SameSite`
 * alone would be one lock; these hold without it: another site cannot set the header without a question (CORS) to which nobody here says
 * yes, cannot choose its `Origin`, and under a name that it made lead here (DNS rebinding) is not at home.
 */
export interface PageRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** It came over TLS to this process. */
  readonly isEncrypted: boolean;
}

/** The value of the sign-in's cookie; null: there is none. Two of them are none, since nobody can say which is ours. */
export function cookieIn({ cookie = "" }: IncomingHttpHeaders): string | null {
  const values = cookie
    .split(";")
    .map((each) => each.trim())
    .filter((each) => each.startsWith(`${cookieName}=`))
    .map((each) => each.slice(cookieName.length + 1));
  const [value = ""] = values;
  return values.length === 1 && /^[\w-]{43}$/.test(value) ? value : null;
}
const attributes = "Path=/; HttpOnly; Secure; SameSite=Strict";
/** @param maxAgeS seconds that the browser keeps it */
export const cookieSet = (value: string, maxAgeS: number): string =>
  `${cookieName}=${value}; Max-Age=${maxAgeS}; ${attributes}`;
export const cookieCleared = `${cookieName}=; Max-Age=0; ${attributes}`;

/**
 * Why the gateway has no page under this `Host`; null: it has. A number leads nowhere else, so only a name can be made to lead here.
 * @param isOwnName that the gateway's certificate is for
 */
export function hostFault(host: string | undefined, isOwnName: (name: string) => boolean): RefusedError | null {
  const name = nameOf(host ?? "");
  if (name === "localhost" || isIP(name.replace(/^\[|\]$/g, "")) !== 0 || (name !== "" && isOwnName(name))) return null;
  const shown = (host ?? "").slice(0, 100);
  return refused(
    403,
    "page-host",
    `the gateway is not known as "${shown}": its page is under a name of its certificate, or its address`,
  );
}
function nameOf(host: string): string {
  if (!/^[\w.:[\]-]{1,262}$/.test(host)) return "";
  return URL.parse(`http://${host}`)?.hostname ?? "";
}

/** Why a request is not taken for one of the page; null: it is. */
export function pageFault(
  { method, headers, isEncrypted }: PageRequest,
  isOwnName: (name: string) => boolean,
): RefusedError | null {
  const { host, origin } = headers;
  const site = headers["sec-fetch-site"];
  const stranger = hostFault(host, isOwnName);
  if (stranger !== null) return stranger;
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return refused(403, "page-foreign", `the cookie counts for the gateway's own page alone, and this is ${site}`);
  if (method === "GET" || method === "HEAD") return null;
  const own = isEncrypted ? [`https://${host}`] : [`https://${host}`, `http://${host}`];
  if (origin === undefined || !own.includes(origin))
    return refused(
      403,
      "page-foreign",
      `with the cookie only the gateway's own page changes something (Origin: ${own[0]}), and this comes from ${(origin ?? "nowhere").slice(0, 100)}`,
    );
  if (headers[pageHeader] === undefined)
    return refused(403, "page-foreign", "a request with the cookie that changes something has the header Cells-Page");
  return null;
}
