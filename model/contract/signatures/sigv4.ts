import { fail, ok, type Result } from "../../result.ts";

/*
 * AWS Signature Version 4, as "Create a signed AWS API request" of its documentation has it, for services other than S3: what of a request
 * is signed. Whoever has a key's secret signs this text; whether the signature is right, the service `tenancy` says, which has that secret.
 */

/** A request, of which nothing was decoded yet. */
export interface RequestAsSent {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** In their order; names in any case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** SHA-256 of the body, in hexadecimal. */
  readonly bodyHash: string;
}
/** What somebody says who has signed a request with a key. */
export interface Signed {
  readonly scheme: "sigv4" | "cloudstack";
  /** Id of the key. */
  readonly key: string;
  /** It says of itself when it was signed, or how long it counts. */
  readonly stringToSign: string;
  readonly signature: string;
}
/** In hexadecimal, of the UTF-8 of a text. */
export type Sha256 = (text: string) => string;

export const sigv4Algorithm = "AWS4-HMAC-SHA256";
export const sigv4End = "aws4_request";
const dateForm = /^\d{8}T\d{6}Z$/;
const hashForm = /^[0-9a-f]{64}$/;
/** `<key>/<date>/<region>/<service>/aws4_request` */
const credentialForm = /^([\w-]{1,128})\/((\d{8})\/[\w-]{1,64}\/[\w-]{1,64}\/aws4_request)$/;

interface Claimed {
  readonly key: string;
  readonly scope: string;
  readonly date: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** The signature is in the query, which counts without it. */
  readonly isInQuery: boolean;
}

/** Null: the request shows no such signature. */
export function readSigV4(request: RequestAsSent, sha256: Sha256): Result<Signed, string> | null {
  const query = queryOf(request.target);
  const authorization = valuesOf(request, "authorization").find((value) => value.startsWith(sigv4Algorithm));
  const isInQuery = query.ok && query.value.some(([name]) => name === "X-Amz-Algorithm");
  if (authorization === undefined && !isInQuery) return null;
  if (!query.ok) return query;
  if (authorization !== undefined && isInQuery)
    return fail("the signature is in the header Authorization or in the query, and not in both");
  const claimed = authorization === undefined ? inQuery(query.value) : inHeader(request, authorization);
  if (!claimed.ok) return claimed;
  const wrong = whyNotSigned(request, claimed.value);
  if (wrong !== null) return fail(wrong);
  const { key, scope, date, signature, signedHeaders } = claimed.value;
  const canonical = canonicalRequest(request, query.value, signedHeaders);
  const stringToSign = [sigv4Algorithm, date, scope, sha256(canonical)].join("\n");
  return ok({ scheme: "sigv4", key, stringToSign, signature });
}

// --- what the request says of its signature ----------------------------------------------------------------------------

function inHeader(request: RequestAsSent, authorization: string): Result<Claimed, string> {
  const parts = authorization.slice(sigv4Algorithm.length).split(",");
  const found = new Map(
    parts.map((part) => {
      const [name = "", ...value] = part.trim().split("=");
      return [name, value.join("=")];
    }),
  );
  const dates = valuesOf(request, "x-amz-date");
  if (dates.length !== 1) return fail("say when it was signed in one header X-Amz-Date, as 20260102T030405Z");
  return claimedBy((name) => found.get(name), dates[0] ?? "", false);
}
function inQuery(query: Query): Result<Claimed, string> {
  const names = query.map(([name]) => name);
  const twice = names.find((name, index) => name.startsWith("X-Amz-") && names.indexOf(name) !== index);
  if (twice !== undefined) return fail(`${twice} is in the query twice`);
  const find = (name: string): string | undefined => query.find(([each]) => each === `X-Amz-${name}`)?.[1];
  if (find("Algorithm") !== sigv4Algorithm) return fail(`X-Amz-Algorithm is not ${sigv4Algorithm}`);
  return claimedBy(find, find("Date") ?? "", true);
}
function claimedBy(
  find: (name: string) => string | undefined,
  date: string,
  isInQuery: boolean,
): Result<Claimed, string> {
  const [, key = "", scope = "", day = ""] = credentialForm.exec(find("Credential") ?? "") ?? [];
  if (key === "")
    return fail(`Credential is not as KEY/20260102/REGION/SERVICE/${sigv4End}, with the date on which it was signed`);
  if (!dateForm.test(date)) return fail("X-Amz-Date is not as 20260102T030405Z");
  if (!date.startsWith(day)) return fail("Credential and X-Amz-Date are of two days");
  const signedHeaders = (find("SignedHeaders") ?? "").split(";");
  if (signedHeaders.some((name, index) => !/^[a-z0-9_-]+$/.test(name) || name <= (signedHeaders[index - 1] ?? "")))
    return fail("SignedHeaders are not names in small letters, in their order, with semicolons between");
  const signature = find("Signature") ?? "";
  if (!hashForm.test(signature)) return fail("Signature is not 64 hexadecimal digits");
  return ok({ key, scope, date, signedHeaders, signature, isInQuery });
}

/** What is read of a request has to be signed. Null: it is. */
function whyNotSigned(request: RequestAsSent, { signedHeaders, isInQuery }: Claimed): string | null {
  const names = [...new Set(request.headers.map(([name]) => name.toLowerCase()))];
  const missing = signedHeaders.find((name) => !names.includes(name));
  if (missing !== undefined) return `the header ${missing} was signed and is not there`;
  // The date of one that is signed in its query is there.
  const demanded = names.filter((name) => name.startsWith("x-amz-") && !(isInQuery && name === "x-amz-date"));
  const unsigned = ["host", ...demanded].find((name) => !signedHeaders.includes(name));
  if (unsigned !== undefined) return `the header ${unsigned} is not signed`;
  const [said, ...more] = valuesOf(request, "x-amz-content-sha256");
  if (more.length > 0 || (said !== undefined && said !== request.bodyHash))
    return "the header x-amz-content-sha256 is not the SHA-256 of the body";
  return null;
}

// --- the canonical request ---------------------------------------------------------------------------------------------

type Query = readonly (readonly [name: string, value: string])[];

export function canonicalRequest(request: RequestAsSent, query: Query, signedHeaders: readonly string[]): string {
  const { method, target, bodyHash } = request;
  const [path = ""] = target.split("?", 1);
  const written = query
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort(([name, value], [other, otherValue]) => compare(name, other) || compare(value, otherValue))
    .map(([name, value]) => `${name}=${value}`);
  const headers = signedHeaders.map((name) => `${name}:${valuesOf(request, name).join(",")}\n`);
  return [method, canonicalPath(path), written.join("&"), headers.join(""), signedHeaders.join(";"), bodyHash].join(
    "\n",
  );
}
const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Without `.`, `..` and empty parts, and what is encoded already is encoded once more. */
function canonicalPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(encoded(part));
  }
  const end = parts.length > 0 && /\/\.{0,2}$/.test(path) ? "/" : "";
  return `/${parts.join("/")}${end}`;
}

/** Trimmed, and spaces within as one. */
const valuesOf = ({ headers }: RequestAsSent, name: string): readonly string[] =>
  headers.flatMap(([each, value]) => (each.toLowerCase() === name ? [value.trim().replace(/\s+/g, " ")] : []));

function queryOf(target: string): Result<Query, string> {
  const at = target.indexOf("?");
  const parts = at < 0 ? [] : target.slice(at + 1).split("&");
  try {
    return ok(
      parts
        .filter((part) => part !== "")
        .map((part) => {
          const [name = "", ...value] = part.split("=");
          return [decodeURIComponent(name), decodeURIComponent(value.join("="))] as const;
        }),
    );
  } catch {
    return fail("the query is not UTF-8 in percent-encoding");
  }
}
/** RFC 3986: all but letters, digits and `-._~`. */
const encoded = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

// --- to sign a request -------------------------------------------------------------------------------------------------

/** What a client signs: the text, and the header as which its signature goes with it. */
export interface ToSign {
  readonly stringToSign: string;
  readonly authorization: (signature: string) => string;
}
/** @param scope `<date>/<region>/<service>/aws4_request`. All headers that are given are signed, `x-amz-date` among them */
export function sigV4Of(request: RequestAsSent, key: string, scope: string, sha256: Sha256): ToSign {
  const names = [...new Set(request.headers.map(([name]) => name.toLowerCase()))].sort();
  const [date = ""] = valuesOf(request, "x-amz-date");
  const query = queryOf(request.target);
  const canonical = canonicalRequest(request, query.ok ? query.value : [], names);
  return {
    stringToSign: [sigv4Algorithm, date, scope, sha256(canonical)].join("\n"),
    authorization: (signature) =>
      `${sigv4Algorithm} Credential=${key}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
  };
}
