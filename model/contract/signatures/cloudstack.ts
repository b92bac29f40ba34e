import { fail, ok, type Result } from "../../result.ts";
import type { Signed } from "./sigv4.ts";

/*
 * The signature of CloudStack's API, as "Signing API Requests" of its documentation has it: parameters by their names, values encoded, all in
 * small letters, and of that the HMAC-SHA1. It does not tell large letters from small ones.
 */

/** Decoded, from the query and from a form in the body, in their order. */
export type Parameters = readonly (readonly [name: string, value: string])[];

const nameForm = /^[A-Za-z0-9_.[\]-]{1,128}$/;

/** Null: the request shows no such signature. */
export function readCloudStack(parameters: Parameters): Result<Signed, string> | null {
  const find = (name: string): string | undefined => parameters.find(([each]) => each.toLowerCase() === name)?.[1];
  const signature = find("signature");
  if (signature === undefined) return null;
  const seen = new Set<string>();
  for (const [name] of parameters) {
    // Of two of a name it would not be sure which one counts, and another name could hide one.
    if (seen.has(name.toLowerCase())) return fail(`the parameter ${name} is there twice`);
    if (!nameForm.test(name)) return fail("a parameter's name has letters, digits and ._-[] alone");
    seen.add(name.toLowerCase());
  }
  const key = find("apikey") ?? "";
  if (!/^[\w-]{1,128}$/.test(key)) return fail("apiKey is not the id of a key");
  const signed = parameters.filter(([name]) => name.toLowerCase() !== "signature");
  return ok({ scheme: "cloudstack", key, stringToSign: cloudStackString(signed), signature });
}
export const cloudStackString = (parameters: Parameters): string =>
  parameters
    .map(([name, value]) => [name.toLowerCase(), `${name}=${encoded(value)}`.toLowerCase()] as const)
    .sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
    .map(([, written]) => written)
    .join("&");

/** As Java's `URLEncoder`, with `%20` for a space: what CloudStack's own server makes of a value. */
const encoded = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
