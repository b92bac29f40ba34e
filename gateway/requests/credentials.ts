import { match } from "../../model/contract/match.ts";
import { bearerOf, cellOf, isAuthorized } from "../../runtime/http/bearer.ts";

/**
 * Who asks: the operator, whoever holds something that says it is a credential of that cell, or a user of that account, whom the service
 * `tenancy` knows.
 */
export type Scope =
  | { readonly kind: "operator" }
  | { readonly kind: "cell"; readonly cell: string }
  | { readonly kind: "account"; readonly account: string };

/** Null: neither. What a cell's credential is worth, its controller says; here it only narrows what may be asked. */
export function scopeOf(header: string | undefined, operatorHashes: readonly string[]): Scope | null {
  if (isAuthorized(header, operatorHashes)) return { kind: "operator" };
  const credential = bearerOf(header);
  const cell = credential === null ? null : cellOf(credential);
  return cell === null ? null : { kind: "cell", cell };
}

/** Why the holder of a cell's credential may not ask this; null: nothing speaks against it. */
export function beyondScope(scope: Scope, method: string, url: string): string | null {
  if (scope.kind === "operator") return null;
  const { who, path } = match(method, url)?.route ?? {};
  if (scope.kind === "account")
    return who === "operator"
      ? "this is for the operator, by the operator's credential: no user's session opens it"
      : null;
  if (who === "cell" && path === url.split("?")[0]) return null;
  const below = /^\/cells\/([^/?]+)/.exec(url)?.[1];
  const cell = who === "operator" ? undefined : below;
  if (cell !== undefined && cell === scope.cell) return null;
  return cell === undefined
    ? `this is for the operator, and the credential is one of the cell "${scope.cell}"`
    : `the credential is one of the cell "${scope.cell}" and opens no other: use one of the cell "${cell}"`;
}
