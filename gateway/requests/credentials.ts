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

/** Somebody, whichever of his credentials he shows: what one may have of something counts for the person, and for whose share it is of. */
export interface Person {
  readonly person: string;
  readonly scope: Scope;
}

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
  const below = /^\/cells\/([^/?]+)/.exec(url)?.[1];
  if (scope.kind === "account") {
    // What the table does not name may be served by a cell's controller of the next version, and by nobody else.
    const isOpen = who === undefined ? below !== undefined : who !== "operator";
    return isOpen ? null : "this is for the operator, by the operator's credential: no user's session opens it";
  }
  if (who === "cell" && path === url.split("?")[0]) return null;
  const cell = who === "operator" ? undefined : below;
  if (cell !== undefined && cell === scope.cell) return null;
  return cell === undefined
    ? `this is for the operator, and the credential is one of the cell "${scope.cell}"`
    : `the credential is one of the cell "${scope.cell}" and opens no other: use one of the cell "${cell}"`;
}

/**
 * The router leaves out what stands behind a `#`, and what an absolute URL begins with; the table of routes does not. Who may ask is
 * looked up by the one and answered by the other, so a path that they may read differently is none.
 */
export const isPlainPath = (url: string): boolean => /^\/[^#]*$/.test(url);
