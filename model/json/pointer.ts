import { fail, ok, type Result } from "../result.ts";
import type { Json } from "./json.ts";

/** A JSON Pointer (RFC 6901) in its parts: of `/shop/web/x.memory` there are three. */
export type Pointer = readonly string[];

/** @param most parts that it may have. The error goes on after "the pointer": `begins with /`. */
export function readPointer(text: string, most: number): Result<Pointer, string> {
  if (text === "") return ok([]);
  if (!text.startsWith("/")) return fail("begins with / unless it is empty");
  if (/~(?![01])/.test(text)) return fail("has a ~ that is not followed by 0 or 1: ~0 stands for ~, ~1 for /");
  const parts = text.slice(1).split("/", most + 1);
  if (parts.length > most) return fail(`has more than ${most} parts`);
  return ok(parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")));
}
export const writePointer = (pointer: Pointer): string =>
  pointer.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Are at most so many lists and objects inside one another? It is looked through without recursion. */
export function isWithinDepth(json: Json, most: number): boolean {
  let level: readonly Json[] = [json];
  for (let depth = 0; level.length > 0; depth += 1) {
    const holders = level.filter((each) => typeof each === "object" && each !== null);
    if (holders.length > 0 && depth === most) return false;
    level = holders.flatMap((each) => Object.values(each as object) as Json[]);
  }
  return true;
}
